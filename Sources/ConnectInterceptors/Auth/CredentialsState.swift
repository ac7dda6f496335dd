internal import Connect
internal import DequeModule

/// The state of ``Credentials``: the token, the running refresh, and the waiting calls. A pure state machine: events
/// come in with the time, and actions go out.
struct CredentialsState {
  typealias Waiter = @Sendable (Result<CredentialsLease, ConnectError>) -> Void

  /// The number of a call that waits.
  typealias Wait = UInt64

  struct Held {
    let lease: CredentialsLease
    let expiry: Duration?
    /// From when on a new token is fetched while calls use this one.
    var refreshTime: Duration?
  }

  struct Refresh {
    let id: UInt64
    var reason: CredentialsRefresh.Reason
    var previous: AccessToken?
  }

  /// Where the result of a refresh comes from.
  enum Origin {
    case provider
    case store
  }

  /// What a call is to do.
  enum Answer {
    case use(CredentialsLease, starting: Refresh?)
    /// The waiter was taken and will be called.
    case wait(Wait, starting: Refresh?)
    /// The same; and the refresh with this number must be watched for this long.
    case waitWatching(Wait, UInt64, for: Duration)
    case fail(ConnectError)
  }

  /// Whom to call back, with which result, and the number of the last refresh concerned.
  typealias Outcome = (waiters: [Waiter], result: Result<CredentialsLease, ConnectError>, refresh: UInt64)

  struct Running {
    let id: UInt64
    let start: Duration
    /// The method of the call that started the refresh; nil if the call did not wait.
    let method: String?
    var isWatched = false
    /// When the provider was asked; nil while the store is.
    var asked: Duration?

    /// How long it is until calls stop waiting for this refresh. Nobody is suspected before the provider is asked: a store may
    /// take long.
    func timeToStall(_ timeout: Duration, now: Duration) -> Duration {
      (self.asked ?? now) + timeout.clamped - now
    }
  }

  private struct Waiting {
    let method: String
    /// Whether it may be a call of the provider that waits for itself.
    let isSuspect: Bool
    /// The number of the token that the call has shown first; 0 for none.
    let shown: UInt64
    let waiter: Waiter
  }

  private let configuration: Credentials.Configuration
  private var held: Held?
  var running: Running?
  private var waiting: [Wait: Waiting] = [:]
  private var waitCount: UInt64 = 0
  /// The last token, and why it is not held any more.
  private var lost: (token: AccessToken?, reason: CredentialsRefresh.Reason)?
  /// The token before of a file, which may still have it: set aside while the file is read again.
  private var former: Held?
  /// When a reading of the file ended.
  private var readTime: Duration?
  /// When refreshes were started, for those that still count in the window.
  private var starts: Deque<Duration> = []
  private var tokenCount: UInt64 = 0
  private var refreshCount: UInt64 = 0
  /// Tokens with a lower number are those of another user.
  private var firstGeneration: UInt64 = 0
  /// Methods that have waited for a refresh that went well.
  private var ordinaryMethods = OrdinaryMethods()

  init(_ configuration: Credentials.Configuration, token: AccessToken?, now: Duration) {
    self.configuration = configuration
    if let token { self.hold(token, now: now) }
  }

  // MARK: Calls

  /// A call wants a token, and does not wait.
  ///
  /// - Parameter shown: The number of the token that it has shown first; 0 for none.
  mutating func take(now: Duration, shown: UInt64) -> (lease: CredentialsLease, starting: Refresh?)? {
    guard !self.isFormer(shown), let held = self.held else { return nil }
    if let expiry = held.expiry, now >= expiry {
      self.lose(held.lease.token, .expired, isOtherUser: false)
      return nil
    }
    guard let refreshTime = held.refreshTime, now >= refreshTime, self.running == nil, self.hasRoom(now: now)
    else {
      return (held.lease, nil)
    }
    return (held.lease, self.start(.expiresSoon, previous: held.lease.token, for: nil, now: now))
  }

  /// A call of a method wants a token, and waits for it if it must.
  mutating func take(
    now: Duration,
    for method: String,
    shown: UInt64,
    waiter: @escaping Waiter
  ) -> Answer {
    guard !self.isFormer(shown) else { return .fail(.formerUser) }
    if let (lease, refresh) = self.take(now: now, shown: shown) { return .use(lease, starting: refresh) }
    if let running = self.running { return self.join(running, now: now, for: method, shown: shown, waiter) }
    guard self.hasRoom(now: now) else { return .fail(self.configuration.window.error) }
    let refresh = self.start(self.lost?.reason ?? .missing, previous: self.lost?.token, for: method, now: now)
    let waiting = Waiting(method: method, isSuspect: false, shown: shown, waiter: waiter)
    return .wait(self.add(waiting), starting: refresh)
  }

  /// Whether the call that showed this token belongs to a former user.
  private func isFormer(_ generation: UInt64) -> Bool {
    generation > 0 && generation < self.firstGeneration
  }

  private mutating func join(
    _ running: Running,
    now: Duration,
    for method: String,
    shown: UInt64,
    _ waiter: @escaping Waiter
  ) -> Answer {
    // Who reads a file makes no calls.
    let isSuspect =
      self.configuration.rereading == nil && running.method != method
      && !self.ordinaryMethods.contains(method)
    let waiting = Waiting(method: method, isSuspect: isSuspect, shown: shown, waiter: waiter)
    guard isSuspect else { return .wait(self.add(waiting), starting: nil) }
    let remaining = running.timeToStall(self.configuration.stallTimeout, now: now)
    guard remaining > .zero else { return .fail(self.configuration.stallError) }
    let wait = self.add(waiting)
    guard !running.isWatched else { return .wait(wait, starting: nil) }
    self.running?.isWatched = true
    return .waitWatching(wait, running.id, for: remaining)
  }

  private mutating func add(_ waiting: Waiting) -> Wait {
    self.waitCount += 1
    self.waiting[self.waitCount] = waiting
    return self.waitCount
  }

  /// A call does not wait any more.
  mutating func leave(_ wait: Wait) -> Waiter? {
    self.waiting.removeValue(forKey: wait)?.waiter
  }

  /// The server did not accept a token.
  ///
  /// - Returns: Whether another attempt may show another token of the same user. False if too many tokens were fetched, or
  ///   the file was read just now: then the token is kept, so that one method that refuses every token does not take it from
  ///   all others.
  mutating func refuse(_ generation: UInt64, now: Duration) -> Bool {
    guard !self.isFormer(generation) else { return false }
    guard let held = self.held, held.lease.generation == generation else { return true }
    guard self.running != nil || self.hasRoom(now: now) else { return false }
    if let rereading = self.configuration.rereading, let readTime, now - readTime < rereading.pause {
      return false
    }
    self.lose(held.lease.token, .refused, isOtherUser: false)
    return true
  }

  // MARK: Refreshes

  /// A refresh has ended. Those who waited for it must be called back.
  ///
  /// - Parameters:
  ///   - origin: Where the result comes from. The window counts only what the provider was asked for.
  ///   - isOtherUser: Whether the token is another user's, as after ``invalidate()``.
  mutating func finish(
    _ id: UInt64,
    _ result: Result<AccessToken, ConnectError>,
    from origin: Origin = .provider,
    isOtherUser: Bool = false,
    now: Duration
  ) -> Outcome? {
    guard let running = self.running, running.id == id else { return nil }
    if origin == .store, let index = self.starts.lastIndex(of: running.start) {
      self.starts.remove(at: index)
    }
    if isOtherUser { self.lose(nil, .invalidated, isOtherUser: true) }
    self.running = nil
    if self.configuration.rereading != nil { self.readTime = now }
    switch result {
    case .success(let token):
      if let method = running.method { self.ordinaryMethods.insert(method) }
      for waiting in self.waiting.values { self.ordinaryMethods.insert(waiting.method) }
      return (self.takeWaiters(), .success(self.hold(token, now: now)), id)
    case .failure(let error):
      if let former = self.former.take(), let expiry = former.expiry, now < expiry {
        // One server has refused it. Others may take it until it is too old.
        self.held = former
        self.lost = nil
      }
      if let expiry = self.held?.expiry {
        // Refresh again after half of the remaining lifetime, but not with every call at once.
        let pause = max((expiry - now) / 2, .seconds(1))
        self.held?.refreshTime = now + (self.configuration.rereading.map { min(pause, $0.interval) } ?? pause)
      }
      return (self.takeWaiters(), self.held.map { .success($0.lease) } ?? .failure(error), id)
    }
  }

  /// The token must not be used any more.
  ///
  /// - Parameters:
  ///   - token: What the next token is to replace.
  ///   - isOtherUser: Whether the next token is another user's, as after ``invalidate()``.
  mutating func lose(_ token: AccessToken?, _ reason: CredentialsRefresh.Reason, isOtherUser: Bool) {
    self.former = self.configuration.rereading == nil || isOtherUser ? nil : self.held ?? self.former
    self.held = nil
    self.lost = (token, reason)
    if isOtherUser { self.firstGeneration = self.tokenCount + 1 }
  }

  /// A refresh takes so long that it may wait for a call that waits for this refresh.
  mutating func stall(_ id: UInt64, now: Duration) -> Outcome? {
    guard let running = self.running, running.id == id else { return nil }
    guard let asked = running.asked, now - asked >= self.configuration.stallTimeout.clamped else {
      return nil
    }
    return (self.takeWaiters { $0.isSuspect }, .failure(self.configuration.stallError), id)
  }

  /// Removes waiters, in the order in which they came.
  private mutating func takeWaiters(where isWanted: (Waiting) -> Bool = { _ in true }) -> [Waiter] {
    let waiters = self.waiting.filter { isWanted($0.value) }.sorted { $0.key < $1.key }
    for waiter in waiters { self.waiting[waiter.key] = nil }
    return waiters.map { waiter in
      guard self.isFormer(waiter.value.shown) else { return waiter.value.waiter }
      return { result in waiter.value.waiter(result.flatMap { _ in .failure(.formerUser) }) }
    }
  }

  private mutating func start(
    _ reason: CredentialsRefresh.Reason,
    previous: AccessToken?,
    for method: String?,
    now: Duration
  ) -> Refresh {
    self.refreshCount += 1
    self.running = Running(id: self.refreshCount, start: now, method: method)
    // Files may be read at any rate.
    if self.configuration.rereading == nil { self.starts.append(now) }
    return Refresh(id: self.refreshCount, reason: reason, previous: previous)
  }

  /// Whether the window has room for another refresh.
  private mutating func hasRoom(now: Duration) -> Bool {
    let window = self.configuration.window
    while let first = self.starts.first, now - first >= window.interval { self.starts.removeFirst() }
    return self.starts.count < max(window.maximumRefreshes, 1)
  }

  // MARK: Changes from outside

  /// The user has changed or logged out. The token, and the result of a refresh in flight, belong to the former user.
  ///
  /// - Returns: The waiting calls, which belong to the former user and must fail.
  mutating func invalidate() -> Outcome {
    self.lose(nil, .invalidated, isOtherUser: true)
    self.running = nil
    let error = ConnectError(
      code: .unauthenticated,
      message: "the credentials were invalidated while the call waited for them"
    )
    return (self.takeWaiters(), .failure(error), self.refreshCount)
  }

  /// There is another token. The result of a refresh in flight will be ignored.
  mutating func update(_ token: AccessToken, now: Duration) -> Outcome {
    self.running = nil
    return (self.takeWaiters(), .success(self.hold(token, now: now)), self.refreshCount)
  }

  @discardableResult
  private mutating func hold(_ token: AccessToken, now: Duration) -> CredentialsLease {
    let rereading = self.configuration.rereading
    let lease: CredentialsLease
    if rereading != nil, let last = self.held ?? self.former, last.lease.token.value == token.value {
      // Not another token, so that a server that refuses it is not asked again.
      lease = last.lease
    } else {
      self.tokenCount += 1
      lease = CredentialsLease(token, generation: self.tokenCount, self.configuration)
    }
    let lifetime = token.lifetime?.clamped
    self.held = Held(
      lease: lease,
      expiry: lifetime.map { now + $0 },
      // A token that lives shorter than the margin would otherwise be fetched again with every call.
      refreshTime: lifetime.map {
        now + (rereading?.interval ?? $0 - min(self.configuration.refreshAhead.clamped, $0 / 2))
      }
    )
    self.lost = nil
    self.former = nil
    return lease
  }
}

extension ConnectError {
  fileprivate static let formerUser = ConnectError(
    code: .unauthenticated,
    message:
      "the credentials belong to another user since the call's first attempt, so there is no second attempt; "
      + "for the new user, make a new call"
  )
}

extension Credentials.Configuration {
  /// The error of a call that may wait for itself.
  fileprivate var stallError: ConnectError {
    ConnectError(
      code: .unauthenticated,
      message:
        "the call waits for credentials that have been refreshed for \(self.stallTimeout.clamped). "
        + "If it is the provider's own call, made in a detached task or a callback, make it with the refresh's options, "
        + "or leave its method out of the credentials' configuration"
    )
  }
}

extension Credentials.RefreshWindow {
  /// The error of a call that would need another refresh.
  fileprivate var error: ConnectError {
    ConnectError(
      code: .unauthenticated,
      message:
        "no credentials: they were refreshed \(self.maximumRefreshes) times within \(self.interval.clamped), "
        + "which is the limit; see Credentials.Configuration.window"
    )
  }
}
