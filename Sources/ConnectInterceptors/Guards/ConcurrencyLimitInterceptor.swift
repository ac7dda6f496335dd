public import Connect
internal import NIOCore

/// Lets a call wait for a place of a ``ConcurrencyLimiter``, and passes the place to the next call at its end.
///
/// Inside of an interceptor that retries, each attempt takes a place, and the call has none while it waits for the next
/// attempt. Outside of it, a call keeps its place through all attempts. A stream keeps its place until its end.
public final class ConcurrencyLimitInterceptor: Interceptor {
  private let limiter: ConcurrencyLimiter
  /// When the call began: the interceptor is made for one call.
  private let start: Duration
  private var place: ConcurrencyLimiter.Place?

  /// An interceptor for one call, as each factory makes it.
  public init(_ limiter: ConcurrencyLimiter) {
    self.limiter = limiter
    self.start = limiter.now
  }

  public func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(endFunction: { _ in self.leave() })
  }

  public func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { request, proceed in self.enter(request) { proceed($0.map { request }) } },
      responseFunction: { response, proceed in
        self.leave()
        proceed(response)
      }
    )
    .placed(.userIndependent)
  }

  public func streamFunction() -> StreamFunction {
    StreamFunction(
      requestFunction: { request, proceed in self.enter(request) { proceed($0.map { request }) } },
      streamResultFunction: { result, proceed in
        if case .complete = result { self.leave() }
        proceed(result)
      }
    )
  }

  private func enter<Message>(_ request: HTTPRequest<Message>, _ turn: @escaping ConcurrencyLimiter.Turn) {
    // A retry of an interceptor inside keeps its place. An attempt that was abandoned while it waited enters the queue
    // again.
    if let place = self.place {
      guard !self.limiter.isRunning(place) else { return turn(.success(())) }
      self.leave()
    }
    switch self.limiter.enter(deadline: request.timeout.map { self.start + $0.clamped }, turn) {
    case .running(let place):
      self.place = place
      turn(.success(()))
    case .waiting(let place):
      self.place = place
    case .refused(let error):
      turn(.failure(error))
    }
  }

  private func leave() {
    if let place = self.place.take() { self.limiter.leave(place) }
  }
}
