internal import Connect
internal import ConnectTesting

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

extension ExplorationCase {
  static let repeatedPayment = ExplorationCase(
    "RepeatedPayment",
    source: "softonic/axios-retry#17",
    breaking: ["pays once"],
    InterceptorExplorer(of: { _ in RepeatedPayment() })
      .server(.answers(.ok, .unavailable, .reset))
      .neighbours(false)
      .check("pays once") { run in
        // The server may have done what it did not answer.
        run.calls.allSatisfy { call in call.attempts.dropLast().allSatisfy { $0.answer != .reset } }
      }
  )
}
