public import Connect
internal import NIOCore

/// Lets a call wait for a permit of a ``ConcurrencyLimiter``, and releases the permit at its end.
///
/// Inside of an interceptor that retries, each attempt acquires a permit, and the call has none while it waits for the next
/// attempt. Outside of it, a call keeps its permit through all attempts. A stream keeps its permit until its end.
public final class ConcurrencyLimitInterceptor: Interceptor {
  private let limiter: ConcurrencyLimiter
  /// When the call began: the interceptor is made for one call.
  private let start: Duration
  private var permit: ConcurrencyLimiter.PermitID?

  /// An interceptor for one call, as each factory makes it.
  public init(_ limiter: ConcurrencyLimiter) {
    self.limiter = limiter
    self.start = limiter.now
  }

  public func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(endFunction: { _ in self.release() })
  }

  public func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { request, proceed in self.acquire(request) { proceed($0.map { request }) } },
      responseFunction: { response, proceed in
        self.release()
        proceed(response)
      }
    )
    .placed(.userIndependent)
  }

  public func streamFunction() -> StreamFunction {
    StreamFunction(
      requestFunction: { request, proceed in self.acquire(request) { proceed($0.map { request }) } },
      streamResultFunction: { result, proceed in
        if case .complete = result { self.release() }
        proceed(result)
      }
    )
  }

  private func acquire<Message>(
    _ request: HTTPRequest<Message>,
    _ completion: @escaping ConcurrencyLimiter.Completion
  ) {
    // A retry of an interceptor inside keeps its permit. An attempt that was abandoned while it waited enters the queue
    // again.
    if let permit = self.permit {
      guard !self.limiter.isRunning(permit) else { return completion(.success(())) }
      self.release()
    }
    switch self.limiter.acquire(deadline: request.timeout.map { self.start + $0.clamped }, completion) {
    case .running(let permit):
      self.permit = permit
      completion(.success(()))
    case .waiting(let permit):
      self.permit = permit
    case .refused(let error):
      completion(.failure(error))
    }
  }

  private func release() {
    if let permit = self.permit.take() { self.limiter.release(permit) }
  }
}
