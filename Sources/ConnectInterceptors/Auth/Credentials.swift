public import Connect
public import Logging
public import NIOCore
internal import Synchronization

/// The credentials whose provider makes the present call. The call goes without them.
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
/// Refreshes are single-flight: however many calls need a new token, one refresh runs, in a task that no call cancels.
/// A call waits no longer than its deadline and cancellation allow.
///
/// The provider's own calls go without these credentials, whichever client makes them, also in tasks started with
/// `Task { … }`. A call that inherits nothing of the provider's task needs ``CredentialsRefresh/options``, or a method
/// that ``Configuration/methods`` leaves out.
///
/// A token in a file that another program replaces has ``file(_:for:checkInterval:maximumAge:configuration:clock:logger:)``.
///
/// With a ``CredentialStore`` the login survives a restart of the process. Without one it ends with the process.
///
/// When the user changes, call ``invalidate()``, and then ``update(_:)`` if the new token is already known.
public final class Credentials: Sendable {
  /// Fetches a token.
  ///
  /// An error that it throws fails the waiting calls: a `ConnectError` as it is, any other error as the cause of
  /// `unauthenticated`.
  public typealias Provider = @Sendable (CredentialsRefresh) async throws -> AccessToken

  /// Makes the headers that show a token to the server with one request, for example a signature of it.
  ///
  /// The request is the one that the interceptor received. `message` is what a unary call sends, encoded but not
  /// compressed; nil for streams. A thrown error fails the call, as with ``Provider``. The function must not block, since it
  /// may begin on the call's executor. Its task is cancelled when the attempt ends. Its own calls go without these credentials.
  public typealias Signer = @Sendable (HTTPRequest<ByteBuffer?>, AccessToken) async throws -> Headers

  /// How the token is shown to servers, and when it is replaced. It never changes.
  public let configuration: Configuration
  let signer: Signer?
  let hosts: HostList
  /// Nil without a store.
  let keeper: CredentialsKeeper?
  private let provider: Provider
  private let clock: any Clock<Duration>
  private let time: ElapsedTime
  private let state: Mutex<CredentialsState>
  /// Watches a refresh that may wait for itself.
  private let stallTimer = StallTimer()

  /// - Parameters:
  ///   - hosts: Where the token may go: names or addresses as in the client's `host`, without the port; `*.example.com`
  ///     for all names below; the path of a Unix domain socket; `unix-abstract:NAME` and `vsock:CID:PORT`. Calls to other
  ///     hosts go without. A call with an authority of its own goes with the token if both hosts are in the list.
  ///   - token: A token to begin with; nil to load or fetch one for the first call. It is not saved.
  ///   - store: Where the token is kept; nil for this process's memory alone.
  ///   - configuration: See ``configuration``.
  ///   - clock: The time for expiry and limits.
  ///   - wallClock: The time for the expiry of tokens in the store.
  ///   - logger: Warns if the store fails to save or to clear; nothing is logged by default.
  ///   - signer: Makes the headers of each request from the token. Nil for the token itself, in
  ///     ``Configuration/header`` and ``AccessToken/headers``.
  ///   - provider: Fetches a token.
  public init(
    for hosts: [String],
    token: AccessToken? = nil,
    store: (any CredentialStore)? = nil,
    configuration: Configuration = .defaults,
    clock: any Clock<Duration> = ContinuousClock(),
    wallClock: WallClock = .system,
    logger: Logger = Logger(label: "connect", factory: { _ in SwiftLogNoOpLogHandler() }),
    signer: Signer? = nil,
    provider: @escaping Provider
  ) {
    self.hosts = HostList(hosts)
    self.configuration = configuration
    self.signer = signer
    self.provider = provider
    self.keeper = store.map { CredentialsKeeper($0, clock: wallClock, logger: logger) }
    self.clock = clock
    self.time = ElapsedTime(on: clock)
    self.state = Mutex(CredentialsState(configuration, token: token, now: self.time.now))
  }

  // MARK: Changes of the user

  /// Forgets the token and its user, for example when a user logs out: the next call waits for a new token from the
  /// provider.
  ///
  /// Waiting calls belong to the former user: they fail with `unauthenticated`. The result of a refresh in flight is
  /// ignored. A call that has shown the former token makes no other attempt with another token.
  ///
  /// The store is cleared in the background; see ``flushStore()``. If that fails, the log has a warning, and this process
  /// does not read the store before it has saved another token there.
  public func invalidate() {
    let (outcome, mustWork) = self.state.withLock { ($0.invalidate(), self.keeper?.invalidated() ?? false) }
    self.tell(outcome)
    if mustWork { self.keeper?.start(for: self) }
  }

  /// Replaces the token, for example after a login. Waiting calls proceed with the new token. The result of a refresh in
  /// flight is ignored.
  ///
  /// If the token is another user's, call ``invalidate()`` first, so that no call of the former user proceeds with it.
  ///
  /// The token is saved in the store in the background; see ``flushStore()``.
  public func update(_ token: AccessToken) {
    let now = self.time.now
    let (outcome, mustWork) = self.state.withLock { state in
      (state.update(token, now: now), self.keeper?.updated(token) ?? false)
    }
    self.tell(outcome)
    if mustWork { self.keeper?.start(for: self) }
  }

  /// Waits until the store has what these credentials have: the token of the last refresh or ``update(_:)``, or nothing
  /// after ``invalidate()``. For programs that end soon after a login or logout.
  ///
  /// It returns at once if there is no store. It does not wait for a refresh in flight.
  ///
  /// - Throws: A `ConnectError` that says why the last change failed; `CancellationError` if the task is cancelled.
  public func flushStore() async throws {
    try await self.keeper?.flush()
  }

  // MARK: For the interceptor

  /// Whether a request should carry the token.
  ///
  /// - Throws: ``ConnectError`` with `unauthenticated` if the token should go but the connection is not secure, as in gRPC.
  func apply<Message>(to request: HTTPRequest<Message>) throws(ConnectError) -> Bool {
    guard !request.headers.contains(self.configuration.header),
      !request.context[WithoutCredentials.self],
      !request.context[RefreshedCredentials.self].contains(ObjectIdentifier(self))
    else { return false }
    return try self.mayGo(to: request)
  }

  /// Whether the token may go where a request goes.
  ///
  /// - Throws: ``ConnectError`` with `unauthenticated` if only the lack of TLS forbids it.
  func mayGo<Message>(to request: HTTPRequest<Message>) throws(ConnectError) -> Bool {
    guard self.hosts.contains(request.url.origin.hostInSettings),
      self.hosts.allows(request.authority)
    else { return false }
    guard request.url.origin.scheme.isPrivate || self.configuration.allowsCleartext else {
      throw ConnectError(
        code: .unauthenticated,
        message: "credentials are not sent to \(request.url.origin), which is reached without TLS"
      )
    }
    return true
  }

  /// The token, if there is a valid one.
  ///
  /// - Parameter shown: The number of the token that the call has shown first; 0 for none. After a change of the user
  ///   the call gets no other token.
  func take(shown: UInt64) -> CredentialsLease? {
    let now = self.time.now
    guard let (lease, refresh) = self.state.withLock({ $0.take(now: now, shown: shown) }) else { return nil }
    if let refresh { self.start(refresh) }
    return lease
  }

  /// Calls back once with the token, or with the error of the refresh.
  ///
  /// - Parameters:
  ///   - method: The path of the call's method.
  ///   - shown: The number of the token that the call has shown first; 0 for none. After a change of the user the call
  ///     fails.
  /// - Returns: The wait, for ``leave(_:)``; nil if the completion has already been called.
  func take(
    for method: String,
    shown: UInt64,
    _ completion: @escaping @Sendable (Result<CredentialsLease, ConnectError>) -> Void
  ) -> CredentialsState.Wait? {
    let now = self.time.now
    switch self.state.withLock({ $0.take(now: now, for: method, shown: shown, waiter: completion) }) {
    case .use(let lease, let refresh):
      if let refresh { self.start(refresh) }
      completion(.success(lease))
    case .wait(let wait, let refresh):
      if let refresh { self.start(refresh) }
      return wait
    case .waitWatching(let wait, let refresh, let time):
      self.watch(refresh, for: time)
      return wait
    case .fail(let error):
      completion(.failure(error))
    }
    return nil
  }

  /// Ends a wait. Its completion is released and not called.
  func leave(_ wait: CredentialsState.Wait) {
    // Outside of the lock: releasing the completion may release the call and run user code.
    let waiter = self.state.withLock { $0.leave(wait) }
    withExtendedLifetime(waiter) {}
  }

  /// Reports that the server refused a token. The token is not used any more, unless a file still has it.
  ///
  /// - Returns: Whether another attempt makes sense.
  func refuse(_ generation: UInt64) -> Bool {
    let now = self.time.now
    return self.state.withLock { $0.refuse(generation, now: now) }
  }

  /// The executor of tasks that sleep on the clock.
  var taskExecutor: (any TaskExecutor)? { (self.clock as? any ExecutorClock)?.taskExecutor }

  /// Runs `work` after a time on the clock, in a task that can be cancelled.
  func afterDelay(_ delay: Duration, _ work: @escaping @Sendable () -> Void) -> Task<Void, Never> {
    Task(executorPreference: self.taskExecutor) { [clock] in
      do { try await clock.sleep(for: delay.clamped) } catch { return }
      work()
    }
  }

  /// `context` with a mark: calls made in it do not wait for this token.
  func context(within context: CallContext) -> CallContext {
    var context = context
    context[RefreshedCredentials.self].insert(ObjectIdentifier(self))
    return context
  }

  // MARK: Refreshing

  /// Whether a refresh is in flight.
  package var isRefreshing: Bool { self.state.withLock { $0.running != nil } }

  /// Calls `body` with the state if a refresh is in flight.
  ///
  /// - Returns: Whether it is.
  @discardableResult
  func ifRunning(_ refresh: CredentialsState.Refresh, _ body: (inout CredentialsState) -> Void = { _ in })
    -> Bool
  {
    self.state.withLock { state in
      guard state.running?.id == refresh.id else { return false }
      body(&state)
      return true
    }
  }

  /// Detached, since the call that starts the refresh may be cancelled.
  private func start(_ refresh: CredentialsState.Refresh) {
    Task.detached(executorPreference: self.taskExecutor) {
      let fetch = Task(executorPreference: self.taskExecutor) {
        if let keeper = self.keeper { return await keeper.refresh(refresh, of: self) }
        self.finish(refresh, await self.fetch(refresh))
      }
      // Calls do not wait for a provider that ignores its cancellation.
      let watch = self.afterDelay(self.configuration.refreshTimeout) {
        self.finish(refresh, .failure(self.configuration.timeoutError))
        fetch.cancel()
      }
      await fetch.value
      watch.cancel()
    }
  }

  func fetch(_ refresh: CredentialsState.Refresh) async -> Result<AccessToken, ConnectError> {
    let now = self.time.now
    self.ifRunning(refresh) { $0.running?.asked = now }
    let context = self.context(within: CallContext())
    let request = CredentialsRefresh(
      reason: refresh.reason,
      previous: refresh.previous,
      options: CallOptions(context: context)
    )
    do {
      return .success(
        try await CallContext.$current.withValue(context) { try await self.provider(request) }
      )
    } catch {
      return .failure(ConnectError(ofRefresh: error))
    }
  }

  /// Ends a refresh, unless it has ended before.
  ///
  /// - Parameters:
  ///   - origin: Where the result comes from.
  ///   - isOtherUser: Whether the user is known to have changed.
  /// - Returns: Whether the credentials now hold a new token that the store lacks.
  @discardableResult
  func finish(
    _ refresh: CredentialsState.Refresh,
    _ result: Result<AccessToken, ConnectError>,
    from origin: CredentialsState.Origin = .provider,
    isOtherUser: Bool = false
  ) -> Bool {
    let now = self.time.now
    let (outcome, mustSave) = self.state.withLock { state -> (CredentialsState.Outcome?, Bool) in
      guard let outcome = state.finish(refresh.id, result, from: origin, isOtherUser: isOtherUser, now: now)
      else { return (nil, false) }
      guard let keeper = self.keeper, origin == .provider, case .success(let token) = result
      else { return (outcome, false) }
      // Under the lock, so that a change of the user comes before or after it.
      keeper.refreshed(token)
      return (outcome, true)
    }
    if let outcome { self.tell(outcome) }
    return mustSave
  }

  /// Calls back those who waited for the refresh, if there was one.
  private func tell(_ outcome: CredentialsState.Outcome) {
    self.stallTimer.cancel(upTo: outcome.refresh)
    self.keeper?.stopAsking(upTo: outcome.refresh)
    for waiter in outcome.waiters { waiter(outcome.result) }
  }

  private func watch(_ refresh: UInt64, for time: Duration) {
    let timer = self.afterDelay(time) {
      let now = self.time.now
      let (outcome, running) = self.state.withLock {
        ($0.stall(refresh, now: now), $0.running)
      }
      guard let outcome else {
        guard let running, running.id == refresh else { return }
        let rest = running.timeToStall(self.configuration.stallTimeout, now: now)
        self.watch(refresh, for: max(rest, .milliseconds(1)))
        return
      }
      for waiter in outcome.waiters { waiter(outcome.result) }
    }
    self.stallTimer.set(timer, for: refresh)
    // The refresh may have ended in between.
    if self.state.withLock({ $0.running?.id != refresh }) { self.stallTimer.cancel(upTo: refresh) }
  }
}

extension ConnectError {
  /// The error of a call for which a user's function has thrown `error`.
  init(ofRefresh error: any Error) {
    guard error is CancellationError else {
      self.init(error, code: .unauthenticated)
      return
    }
    // Not `canceled`: the calls that wait were not cancelled.
    self.init(
      code: .unauthenticated,
      message: "the refresh of the credentials was cancelled",
      exception: error
    )
  }
}

extension Credentials.Configuration {
  fileprivate var timeoutError: ConnectError {
    ConnectError(
      code: .deadlineExceeded,
      message: "the credentials were not refreshed within \(self.refreshTimeout.clamped)"
    )
  }
}
