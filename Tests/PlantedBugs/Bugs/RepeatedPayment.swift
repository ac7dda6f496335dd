internal import Connect

/// Repeats a call that failed.
///
/// The bug: it repeats a call with side effects, too, after an error that leaves open what the server has done.
final class RepeatedPayment: Interceptor {
  private var attempts = 0

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      updateRequest: { _ in self.attempts += 1 },
      updateResponse: { response in
        guard response.error != nil, self.attempts < 3 else { return .proceed }
        return .retry(after: .milliseconds(100))
      }
    )
  }
}
