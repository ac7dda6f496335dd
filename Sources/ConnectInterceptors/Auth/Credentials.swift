internal import Connect
internal import Synchronization

/// Which credentials are being fetched where a call is made.
private enum RefreshedCredentials: CallContextKey {
  static let defaultValue: Set<ObjectIdentifier> = []
}

/// A token for the calls of any number of clients, and how to get a new one.
///
/// Made once and shared; each call has a ``CredentialsInterceptor`` made from it:
///
/// ```swift
/// let credentials = Credentials(for: ["api.example.com"]) { refresh in
///   let response = try await login.getToken(.with { $0.clientID = id })
///   return AccessToken(response.token, expiresIn: .seconds(response.expiresIn))
/// }
/// let config = ProtocolClientConfig(
///   host: "https://api.example.com",
///   interceptors: [{ _ in CredentialsInterceptor(credentials) }]
/// )
/// ```
///
/// However many calls need a new token at the same time, one refresh runs, in a task of its own that no call cancels.
/// Calls wait for it no longer than their deadline and cancellation allow. Calls that the provider makes, also with a client
/// whose calls these credentials are for, go without them; so do those of tasks that it starts with `Task { … }`.
public final class Credentials: Sendable {
  /// Fetches a token.
  ///
  /// What it throws is the error of the calls that wait: ``Connect/ConnectError`` as it is, any other with
  /// `unauthenticated` and itself as the cause.
  public typealias Provider = @Sendable (CredentialsRefresh) async throws -> AccessToken

  public let configuration: Configuration
  /// In lower case.
  let headerName: String
  private let hosts: HostList
  private let provider: Provider
  private let clock: any Clock<Duration>
  private let time: ElapsedTime
  private let state: Mutex<CredentialsState>

  /// - Parameters:
  ///   - hosts: Where the token may go: names or addresses as in the client's `host`, without the port; `*.example.com`
  ///     for all names below; the path of a Unix domain socket. Calls to other hosts go without.
  ///   - token: One to begin with.
  ///   - clock: The time for expiry and limits.
  ///   - provider: Fetches a token.
  public init(
    for hosts: [String],
    token: AccessToken? = nil,
    configuration: Configuration = .defaults,
    clock: any Clock<Duration> = ContinuousClock(),
    provider: @escaping Provider
  ) {
    self.headerName = configuration.header.lowercased()
    self.hosts = HostList(hosts)
    self.configuration = configuration
    self.provider = provider
    self.clock = clock
    self.time = ElapsedTime(on: clock)
    self.state = Mutex(CredentialsState(configuration, token: token, now: self.time.now))
  }

  // MARK: For the interceptor

  /// The request with a note that the token's header is a secret.
  func marked<Message>(_ request: HTTPRequest<Message>) -> HTTPRequest<Message> {
    var request = request
    request.context[SensitiveHeaders.self].insert(self.headerName)
    return request
  }

  /// Whether a request should carry the token.
  ///
  /// - Throws: ``ConnectError`` with `unauthenticated` if it should and the connection is not secure, as gRPC does.
  func apply<Message>(to request: HTTPRequest<Message>) throws(ConnectError) -> Bool {
    guard self.hosts.contains(request.url.host), !request.headers.contains(self.configuration.header),
      !request.context[WithoutCredentials.self],
      !request.context[RefreshedCredentials.self].contains(ObjectIdentifier(self))
    else { return false }
    guard request.url.origin.scheme != .http || self.configuration.allowsCleartext else {
      throw ConnectError(
        code: .unauthenticated,
        message: "credentials are not sent to \(request.url.origin), which is reached without TLS"
      )
    }
    return true
  }

  /// The token, if there is one that is good.
  func take() -> CredentialsLease? {
    let now = self.time.now
    guard let (lease, refresh) = self.state.withLock({ $0.take(now: now) }) else { return nil }
    if let refresh { self.start(refresh) }
    return lease
  }

  /// Calls back once with the token, or with the error of the refresh that was to bring it.
  ///
  /// - Returns: For ``leave(_:)``, if that comes later.
  func take(
    _ completion: @escaping @Sendable (Result<CredentialsLease, ConnectError>) -> Void
  ) -> CredentialsState.Wait? {
    let now = self.time.now
    switch self.state.withLock({ $0.take(now: now, waiter: completion) }) {
    case .use(let lease, let refresh):
      if let refresh { self.start(refresh) }
      completion(.success(lease))
    case .wait(let wait, let refresh):
      if let refresh { self.start(refresh) }
      return wait
    case .fail(let error):
      completion(.failure(error))
    }
    return nil
  }

  /// Whoever waits is not interested any more: it is let go of, and not called back.
  func leave(_ wait: CredentialsState.Wait) {
    // Outside of the lock: with it may go the call, and what is the user's.
    let waiter = self.state.withLock { $0.leave(wait) }
    withExtendedLifetime(waiter) {}
  }

  /// Says that the server did not accept a token: it is not used any more.
  ///
  /// - Returns: Whether another attempt makes sense.
  func refuse(_ generation: UInt64) -> Bool {
    let now = self.time.now
    return self.state.withLock { $0.refuse(generation, now: now) }
  }

  /// Runs `work` after a time on the clock, in a task that can be cancelled.
  func afterDelay(_ delay: Duration, _ work: @escaping @Sendable () -> Void) -> Task<Void, Never> {
    Task { [clock] in
      do { try await clock.sleep(for: delay) } catch { return }
      work()
    }
  }

  // MARK: Refreshing

  /// Detached, since whoever happens to start it may be cancelled.
  private func start(_ refresh: CredentialsState.Refresh) {
    Task.detached {
      let fetch = Task { self.finish(refresh, await self.fetch(refresh)) }
      // Nobody waits for a provider that does not end when it is cancelled.
      let watch = self.afterDelay(self.configuration.refreshTimeout) {
        self.finish(refresh, .failure(self.timeoutError))
        fetch.cancel()
      }
      await fetch.value
      watch.cancel()
    }
  }

  private func fetch(_ refresh: CredentialsState.Refresh) async -> Result<AccessToken, ConnectError> {
    do {
      return .success(
        try await CallContext.$current.withValue(self.contextOfProvider) {
          try await self.provider(CredentialsRefresh(reason: refresh.reason, previous: refresh.previous))
        }
      )
    } catch is CancellationError {
      // Not `canceled`: the calls that wait were not cancelled.
      return .failure(
        ConnectError(
          code: .unauthenticated,
          message: "the refresh of the credentials was cancelled",
          exception: CancellationError()
        )
      )
    } catch {
      return .failure(ConnectError(error, code: .unauthenticated))
    }
  }

  /// So that the provider's own calls do not wait for the token that it is fetching.
  private var contextOfProvider: CallContext {
    var context = CallContext()
    context[RefreshedCredentials.self] = [ObjectIdentifier(self)]
    return context
  }

  private func finish(_ refresh: CredentialsState.Refresh, _ result: Result<AccessToken, ConnectError>) {
    let now = self.time.now
    guard let outcome = self.state.withLock({ $0.finish(refresh.id, result, now: now) }) else { return }
    for waiter in outcome.waiters { waiter(outcome.result) }
  }

  private var timeoutError: ConnectError {
    ConnectError(
      code: .deadlineExceeded,
      message: "the credentials were not refreshed within \(self.configuration.refreshTimeout)"
    )
  }
}
