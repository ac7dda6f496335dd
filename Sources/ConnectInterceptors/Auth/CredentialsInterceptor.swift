public import Connect
internal import NIOCore

/// Shows a token to the server with each call, and makes one more attempt with a new token if the server answers
/// `unauthenticated`. For unary calls and streams.
///
/// A call that has the header already, or ``WithoutCredentials``, passes as it is. The interceptor has to stand inside
/// of those that change where a request goes.
public final class CredentialsInterceptor: Interceptor {
  private let credentials: Credentials
  private let shown = ShownCredentials()
  /// For a refresh.
  private var wait: CredentialsState.Wait?
  /// A stream's headers that wait for what comes behind.
  private var heldHeaders: (headers: DelayedHeaders, timer: Task<Void, Never>)?

  public init(_ credentials: Credentials) {
    self.credentials = credentials
  }

  /// The call is over, and has let go of its interceptors.
  deinit {
    self.stopWaiting()
  }

  // MARK: Unary calls

  public func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { request, proceed in self.attach(to: request, proceed) },
      responseFunction: { response, proceed in
        if response.code == .unauthenticated, self.mayRetry() { proceed.retry() } else { proceed(response) }
      }
    )
  }

  // MARK: Streams

  public func streamFunction() -> StreamFunction {
    StreamFunction(
      requestFunction: { request, proceed in self.attach(to: request, proceed) },
      streamResultFunction: { result, proceed in
        switch result {
        case .headers:
          self.hold(result, proceed)
        case .complete(.unauthenticated, _, _) where self.mayRetry():
          let headers = self.takeHeldHeaders()
          proceed.retry()
          // Where the retry is refused, the error waits behind them; else nobody listens any more.
          headers?.pass()
        case .message, .complete:
          self.takeHeldHeaders()?.pass()
          proceed(result)
        }
      }
    )
  }

  /// Holds headers back for a while: once they have gone out, a stream cannot be started again.
  private func hold(_ headers: StreamResult<ByteBuffer>, _ proceed: StreamFunction.ResultProceed) {
    let delay = self.credentials.configuration.streamHeaderDelay
    guard self.shown.shown > 0, !self.shown.hasRetried, delay > .zero else { return proceed(headers) }
    let held = DelayedHeaders { proceed(headers) }
    self.heldHeaders = (held, self.credentials.afterDelay(delay) { held.pass() })
  }

  private func takeHeldHeaders() -> DelayedHeaders? {
    defer { self.heldHeaders = nil }
    self.heldHeaders?.timer.cancel()
    return self.heldHeaders?.headers
  }

  // MARK: Both

  private func attach<Message, Response>(
    to request: HTTPRequest<Message>,
    _ proceed: Proceed<RequestVerb<HTTPRequest<Message>, Response>>
  ) {
    self.stopWaiting()
    let header = self.credentials.configuration.header
    let given = request.headers.first(header)
    let attempt = self.shown.begin(headerValue: given)
    do {
      guard try self.credentials.apply(to: request) else {
        return proceed(.success(given == nil ? request : self.credentials.marked(request)))
      }
    } catch {
      return proceed(.failure(error))
    }
    let show: @Sendable (CredentialsLease) -> HTTPRequest<Message> = { [shown, credentials] lease in
      shown.show(lease, in: attempt)
      var request = credentials.marked(request)
      // It has none: such a request passes as it is.
      request.headers.add(name: header, value: lease.headerValue)
      return request
    }
    if let lease = self.credentials.take() {
      proceed(.success(show(lease)))
    } else if let wait = self.credentials.take({ proceed($0.map(show)) }) {
      self.wait = wait
    }
  }

  private func stopWaiting() {
    if let wait = self.wait { self.credentials.leave(wait) }
    self.wait = nil
  }

  /// Whether the server has refused the token of this attempt, and another attempt would show another one.
  private func mayRetry() -> Bool {
    let generation = self.shown.shown
    guard generation > 0, !self.shown.hasRetried, self.credentials.refuse(generation) else { return false }
    self.shown.hasRetried = true
    return true
  }
}
