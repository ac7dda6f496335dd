internal import Connect
internal import DequeModule

/// What ``Credentials`` know: the token, the refresh that runs, and who waits for it. A state machine: events come in
/// with the time, and what is to be done goes out.
struct CredentialsState {
  typealias Waiter = @Sendable (Result<CredentialsLease, ConnectError>) -> Void

  /// The number of a call that waits.
  typealias Wait = UInt64

  struct Held {
    let token: AccessToken
    let lease: CredentialsLease
    let expiry: Duration?
    /// From when on a new token is fetched while calls use this one.
    var refreshTime: Duration?
  }

  struct Refresh {
    let id: UInt64
    let reason: CredentialsRefresh.Reason
    let previous: AccessToken?
  }

  /// What a call is to do.
  enum Answer {
    case use(CredentialsLease, starting: Refresh?)
    /// The waiter was taken and will be called.
    case wait(Wait, starting: Refresh?)
    case fail(ConnectError)
  }

  private let configuration: Credentials.Configuration
  private var held: Held?
  private var running: Refresh?
  private var waiters: [Wait: Waiter] = [:]
  private var waitCount: UInt64 = 0
  /// The last token, and why it is not held any more.
  private var lost: (token: AccessToken, reason: CredentialsRefresh.Reason)?
  /// When refreshes were started, as far as they still count.
  private var starts: Deque<Duration> = []
  private var tokenCount: UInt64 = 0
  private var refreshCount: UInt64 = 0

  init(_ configuration: Credentials.Configuration, token: AccessToken?, now: Duration) {
    self.configuration = configuration
    if let token { self.hold(token, now: now) }
  }

  /// A call wants a token, and does not wait.
  mutating func take(now: Duration) -> (lease: CredentialsLease, starting: Refresh?)? {
    guard let held = self.held else { return nil }
    if let expiry = held.expiry, now >= expiry {
      self.held = nil
      self.lost = (held.token, .expired)
      return nil
    }
    guard let refreshTime = held.refreshTime, now >= refreshTime, self.running == nil, self.hasRoom(now: now)
    else {
      return (held.lease, nil)
    }
    return (held.lease, self.start(.expiresSoon, previous: held.token, now: now))
  }

  /// A call wants a token, and waits for it if it must.
  mutating func take(now: Duration, waiter: @escaping Waiter) -> Answer {
    if let (lease, refresh) = self.take(now: now) { return .use(lease, starting: refresh) }
    if self.running != nil { return .wait(self.add(waiter), starting: nil) }
    guard self.hasRoom(now: now) else { return .fail(self.configuration.window.error) }
    let refresh = self.start(self.lost?.reason ?? .missing, previous: self.lost?.token, now: now)
    return .wait(self.add(waiter), starting: refresh)
  }

  private mutating func add(_ waiter: @escaping Waiter) -> Wait {
    self.waitCount += 1
    self.waiters[self.waitCount] = waiter
    return self.waitCount
  }

  /// A call does not wait any more.
  mutating func leave(_ wait: Wait) -> Waiter? {
    self.waiters.removeValue(forKey: wait)
  }

  /// The server did not accept a token.
  ///
  /// - Returns: Whether another attempt would show another token. Not if too many were fetched: then the token is kept,
  ///   since one method that refuses every token must not deprive all others of theirs.
  mutating func refuse(_ generation: UInt64, now: Duration) -> Bool {
    guard let held = self.held, held.lease.generation == generation else { return true }
    guard self.running != nil || self.hasRoom(now: now) else { return false }
    self.held = nil
    self.lost = (held.token, .refused)
    return true
  }

  /// A refresh has ended. Those who waited for it are to be told.
  mutating func finish(
    _ id: UInt64,
    _ result: Result<AccessToken, ConnectError>,
    now: Duration
  ) -> (waiters: [Waiter], result: Result<CredentialsLease, ConnectError>)? {
    guard self.running?.id == id else { return nil }
    self.running = nil
    // In the order in which they came.
    let waiters = self.waiters.sorted { $0.key < $1.key }.map(\.value)
    self.waiters = [:]
    switch result {
    case .success(let token):
      return (waiters, .success(self.hold(token, now: now)))
    case .failure(let error):
      if let expiry = self.held?.expiry {
        // Once more at half of what is left, but not at once with every call.
        self.held?.refreshTime = now + max((expiry - now) / 2, .seconds(1))
      }
      return (waiters, .failure(error))
    }
  }

  @discardableResult
  private mutating func hold(_ token: AccessToken, now: Duration) -> CredentialsLease {
    self.tokenCount += 1
    let headerValue = self.configuration.scheme.map { "\($0) \(token.value)" } ?? token.value
    let lease = CredentialsLease(generation: self.tokenCount, headerValue: headerValue)
    self.held = Held(
      token: token,
      lease: lease,
      expiry: token.lifetime.map { now + $0 },
      // A token that lives shorter than the margin would otherwise be fetched again with every call.
      refreshTime: token.lifetime.map { now + $0 - min(self.configuration.refreshAhead, $0 / 2) }
    )
    self.lost = nil
    return lease
  }

  private mutating func start(
    _ reason: CredentialsRefresh.Reason,
    previous: AccessToken?,
    now: Duration
  ) -> Refresh {
    self.refreshCount += 1
    let refresh = Refresh(id: self.refreshCount, reason: reason, previous: previous)
    self.running = refresh
    self.starts.append(now)
    return refresh
  }

  /// Whether the window has room for another refresh.
  private mutating func hasRoom(now: Duration) -> Bool {
    while let first = self.starts.first, now - first >= self.configuration.window.interval {
      self.starts.removeFirst()
    }
    return self.starts.count < self.configuration.window.maximumRefreshes
  }
}

extension Credentials.RefreshWindow {
  /// Of a call that would need one refresh more.
  fileprivate var error: ConnectError {
    ConnectError(
      code: .unauthenticated,
      message: "no credentials: they were refreshed \(self.maximumRefreshes) times within \(self.interval), "
        + "which is the limit"
    )
  }
}
