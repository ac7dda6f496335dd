public import Connect
internal import NIOCore

/// Shows a token to the server with each call, and makes one more attempt with a new token if the server refuses it.
/// For unary calls and streams.
///
/// A call that already has the header, or ``WithoutCredentials``, passes unchanged. List this interceptor inside of
/// interceptors that change a request's URL.
public final class CredentialsInterceptor: Interceptor {
  private let credentials: Credentials
  private let shown = ShownCredentials()
  /// The wait for a refresh.
  private var wait: CredentialsState.Wait?
  /// Why another attempt was asked for, until it begins.
  private var refusal: Presentation.Refusal?
  /// A stream's headers, held back until the next result or the end of the delay.
  private var heldHeaders: (headers: DelayedHeaders, timer: Task<Void, Never>)?

  /// An interceptor for one call, as each factory makes it.
  public init(_ credentials: Credentials) {
    self.credentials = credentials
  }

  public func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(endFunction: { _ in
      self.stopWaiting()
      self.shown.end()
    })
  }

  // MARK: Unary calls

  public func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { request, proceed in self.attach(to: request, request.message, proceed) },
      responseFunction: { response, proceed in
        if let error = response.error, self.mayRetry(after: error) {
          proceed.retry()
        } else {
          proceed(response)
        }
      }
    )
  }

  // MARK: Streams

  public func streamFunction() -> StreamFunction {
    StreamFunction(
      requestFunction: { request, proceed in self.attach(to: request, nil, proceed) },
      streamResultFunction: { result, proceed in
        switch result {
        case .headers:
          self.hold(result, proceed)
        case .complete(_, let error?, _) where self.mayRetry(after: error):
          let headers = self.takeHeldHeaders()
          proceed.retry()
          // If the retry is refused, the error follows these headers. Otherwise passing them has no effect.
          headers?.pass()
        case .message, .complete:
          self.takeHeldHeaders()?.pass()
          proceed(result)
        }
      }
    )
  }

  /// Holds headers back for a while: once they have gone out, a stream cannot be retried.
  private func hold(_ headers: StreamResult<ByteBuffer>, _ proceed: StreamFunction.ResultProceed) {
    let delay = self.credentials.configuration.streamHeaderDelay
    guard self.shown.generation > 0, !self.shown.hasRetried, delay > .zero else { return proceed(headers) }
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
    _ message: ByteBuffer?,
    _ proceed: Proceed<RequestVerb<HTTPRequest<Message>, Response>>
  ) {
    self.stopWaiting()
    let refusal = self.refusal.take()
    let credentials = self.credentials
    let (attempt, shownHeaders) = self.shown.begin(request.headers)
    guard shownHeaders.isEmpty else { return self.passAgain(request, attempt, shownHeaders, proceed) }
    do {
      guard request.method.map(credentials.configuration.methods) ?? true, try credentials.apply(to: request)
      else {
        let header = credentials.configuration.header
        return self.pass(request, request.headers.contains(header) ? [header.lowercased()] : [], proceed)
      }
    } catch {
      return proceed(.failure(error))
    }
    let presentation = Presentation(
      credentials: credentials,
      shown: self.shown,
      attempt: attempt,
      message: message,
      refusal: refusal
    )
    let firstGeneration = self.shown.firstGeneration
    if let lease = credentials.take(shown: firstGeneration) {
      presentation.show(lease, with: request, proceed)
    } else {
      self.wait = credentials.take(for: request.url.path, shown: firstGeneration) { result in
        switch result {
        case .success(let lease): presentation.show(lease, with: request, proceed)
        case .failure(let error): proceed(.failure(error))
        }
      }
    }
  }

  /// Passes on a request that already has the token, since an interceptor inside sent it again. Removes the token if the
  /// request now goes to a host that may not have it.
  ///
  /// - Parameter headers: The headers that show the token.
  private func passAgain<Message, Response>(
    _ request: HTTPRequest<Message>,
    _ attempt: Int,
    _ headers: Headers,
    _ proceed: Proceed<RequestVerb<HTTPRequest<Message>, Response>>
  ) {
    do {
      if try self.credentials.mayGo(to: request) {
        return self.pass(request, Set(headers.map(\.name)), proceed)
      }
    } catch {
      self.shown.hide(in: attempt)
      return proceed(.failure(error))
    }
    self.shown.hide(in: attempt)
    var request = request
    let others = request.headers.filter { field in
      !headers.contains { $0.name == field.name && $0.value == field.value }
    }
    request.headers = Headers(others)
    self.pass(request, [], proceed)
  }

  /// Passes a request on as it is.
  ///
  /// - Parameter names: The request's headers that carry credentials.
  private func pass<Message, Response>(
    _ request: HTTPRequest<Message>,
    _ names: Set<String>,
    _ proceed: Proceed<RequestVerb<HTTPRequest<Message>, Response>>
  ) {
    proceed(.success(names.isEmpty ? request : request.marking(names)))
  }

  private func stopWaiting() {
    if let wait = self.wait.take() { self.credentials.leave(wait) }
    self.shown.cancelSigning()
  }

  /// Whether the server has refused this attempt's token, and another attempt may show another token.
  private func mayRetry(after error: ConnectError) -> Bool {
    let generation = self.shown.generation
    guard generation > 0, !self.shown.hasRetried, self.credentials.configuration.isRefusal(error),
      self.credentials.refuse(generation)
    else { return false }
    self.shown.hasRetried = true
    self.refusal = Presentation.Refusal(generation: generation, error: error)
    return true
  }
}

extension CredentialsInterceptor: ConfigurationChecking {
  /// Credentials that a program gives to all of its clients are for some of these.
  package var suitsEachClient: Bool { false }

  package func problem(in config: ProtocolClientConfig) -> String? {
    guard let origin = try? Origin.parse(host: config.host).origin,
      !self.credentials.hosts.contains(origin.hostInSettings)
    else { return nil }
    return
      "the credentials for \(self.credentials.hosts.description) do not go to \(origin), the client's host: "
      + "its calls go without them"
  }
}
