public import Connect
internal import NIOCore

/// Bounds the retries of a call, whichever interceptor asks for them. Use it where a method or a call may have fewer
/// retries than the client's cap allows.
///
/// ```swift
/// let options = CallOptions(interceptors: [{ _ in MaximumRetriesInterceptor(1) }])
/// ```
///
/// Inside of the interceptors that retry, it sees the errors of attempts. The last error becomes the call's outcome,
/// marked so that ``RetryInterceptor`` does not retry. Outside of them, it fails the call with `resource_exhausted` and
/// the last error as the cause.
public final class MaximumRetriesInterceptor: Interceptor {
  private let maximum: Int
  private var attemptCount = 0
  private var lastError: ConnectError?

  /// An interceptor for one call. A maximum below 0 counts as 0.
  ///
  /// - Parameter maximum: How many attempts there may be beyond the first.
  public init(_ maximum: Int) {
    self.maximum = max(0, maximum)
  }

  public func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { request, proceed in
        let error = self.beginAttempt(after: proceed.retryCause)
        if let error { proceed(.failure(error)) } else { proceed(.success(request)) }
      },
      responseFunction: { response, proceed in
        self.lastError = response.error
        proceed(response)
      }
    )
    .placed(.userIndependent)
  }

  public func streamFunction() -> StreamFunction {
    StreamFunction(
      requestFunction: { request, proceed in
        let error = self.beginAttempt(after: proceed.retryCause)
        if let error { proceed(.failure(error)) } else { proceed(.success(request)) }
      },
      streamResultFunction: { result, proceed in
        if case .complete(_, let error, _) = result { self.lastError = error }
        proceed(result)
      }
    )
  }

  private func beginAttempt(after cause: ConnectError?) -> ConnectError? {
    self.attemptCount += 1
    guard self.attemptCount - 1 > self.maximum else { return nil }
    let error =
      self.lastError
      ?? ConnectError(
        code: .resourceExhausted,
        message: "the call has made \(self.maximum) retries, the limit of MaximumRetriesInterceptor",
        exception: cause
      )
    return error.forbiddingRetry()
  }
}
