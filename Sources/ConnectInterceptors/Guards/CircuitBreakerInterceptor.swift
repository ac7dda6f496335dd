public import Connect
internal import NIOCore

/// Asks a ``CircuitBreaker`` before each attempt, and tells it of the outcome.
///
/// Inside of a ``RetryInterceptor`` each attempt counts, outside of it each call. The error of an open circuit has the
/// header `grpc-retry-pushback-ms: -1`, so that it is not retried. A stream counts as good when its first message
/// arrives. Its byte hooks see the request as outer interceptors left it, with its final URL.
public final class CircuitBreakerInterceptor: Interceptor {
  private let breaker: CircuitBreaker
  private var admission: (Circuit.Admission, to: SharedCircuit)?

  /// An interceptor for one call, as each factory makes it.
  public init(_ breaker: CircuitBreaker) {
    self.breaker = breaker
  }

  public func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(endFunction: { _ in
      if let (admission, circuit) = self.admission.take() { self.breaker.forget(admission, of: circuit) }
    })
  }

  public func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      updateRequest: { request in if let error = self.admit(request.url) { throw error } },
      updateResponse: { response in
        self.record(response.error)
        return .proceed
      }
    )
    .placed(.userIndependent)
  }

  public func streamFunction() -> StreamFunction {
    StreamFunction(
      requestFunction: { request, proceed in
        if let error = self.admit(request.url) {
          proceed(.failure(error))
        } else {
          proceed(.success(request))
        }
      },
      streamResultFunction: { result, proceed in
        switch result {
        case .headers: break
        case .message: self.record(nil)
        case .complete(_, let error, _): self.record(error)
        }
        proceed(result)
      }
    )
  }

  /// An interceptor inside that retries brings the request again without an outcome in between. This is the same call.
  private func admit(_ url: RequestURL) -> ConnectError? {
    guard self.admission == nil else { return nil }
    let circuit = self.breaker.circuit(for: url)
    switch self.breaker.admit(to: circuit) {
    case .success(let admission):
      self.admission = (admission, circuit)
      return nil
    case .failure(let error):
      return error
    }
  }

  private func record(_ error: ConnectError?) {
    guard let (admission, circuit) = self.admission.take() else { return }
    self.breaker.record(admission, of: circuit, error: error)
  }
}
