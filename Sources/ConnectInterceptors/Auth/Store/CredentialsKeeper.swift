internal import Connect
internal import Logging
internal import Synchronization

/// Keeps a ``CredentialStore`` up to date with ``Credentials``, and knows what in it comes from elsewhere.
///
/// Changes are made one at a time, and the latest one replaces those that have not begun: after a logout, no token that was
/// on its way is stored.
final class CredentialsKeeper: Sendable {
  /// What the store has that these credentials have neither read nor saved.
  enum News {
    case none
    /// Another process has stored a token. `isOtherUser` if it comes from another login.
    case token(StoredToken, isOtherUser: Bool)
    /// Another process has logged out.
    case cleared
  }

  private enum Change {
    case save(StoredToken)
    case clear

    var token: StoredToken? {
      if case .save(let token) = self { token } else { nil }
    }

    /// What the program wanted, for people.
    var verb: String {
      if case .save = self { "saved in" } else { "removed from" }
    }
  }

  private struct State {
    /// What the store had when it was read or changed last.
    var known: StoredToken?
    /// The login of the user; nil if there is none yet.
    var login: String?
    var pending: Change?
    var writing: Change?
    /// Whether a task makes the changes that come from outside of refreshes.
    var hasWorker = false
    /// How many changes were tried.
    var changeCount = 0
    /// The user has changed, and the store does not know it yet. What it has must not be read.
    var isBehind = false
    /// Why the last change failed; nil if it did not.
    var failure: ConnectError?
    var waiting: [UInt64: CheckedContinuation<Void, any Error>] = [:]
    var waitCount: UInt64 = 0

    var isIdle: Bool { self.pending == nil && self.writing == nil && !self.hasWorker }

    /// Removes those who wait for the end of all changes, if it has come.
    mutating func takeWaiting() -> Waiting {
      guard self.isIdle else { return Waiting() }
      defer { self.waiting = [:] }
      return Waiting(continuations: Array(self.waiting.values), failure: self.failure)
    }
  }

  /// Those who wait for the end of all changes, and the error that they get.
  private struct Waiting {
    var continuations: [CheckedContinuation<Void, any Error>] = []
    var failure: ConnectError?

    func resume() {
      for continuation in self.continuations {
        if let failure { continuation.resume(throwing: failure) } else { continuation.resume() }
      }
    }
  }

  let store: any CredentialStore
  /// The provider whose answer a refresh waits for.
  let asked = Mutex<(refresh: UInt64, answer: RefreshAnswer)?>(nil)
  private let clock: WallClock
  private let logger: Logger
  private let state = Mutex(State())

  init(_ store: any CredentialStore, clock: WallClock, logger: Logger) {
    self.store = store
    self.clock = clock
    self.logger = logger
  }

  var now: Duration { self.clock.now }

  /// Reads the store.
  func read() async throws -> News {
    guard let changeCount = self.state.withLock({ $0.isBehind ? nil : $0.changeCount }) else { return .none }
    let stored = try await self.store.load()
    return self.state.withLock { state in
      // A change in between, so what was read may be what it has replaced.
      guard !state.isBehind, state.pending == nil, state.writing == nil, state.changeCount == changeCount,
        stored != state.known
      else { return .none }
      state.known = stored
      let login = state.login
      state.login = stored?.login
      guard let stored else { return .cleared }
      return .token(stored, isOtherUser: login != nil && login != stored.login)
    }
  }

  // MARK: Changes

  /// Notes that a refresh has a new token. ``write()`` saves it.
  func refreshed(_ token: AccessToken) {
    let now = self.now
    self.state.withLock { $0.pending = .save(Self.stored(token, now: now, &$0)) }
  }

  /// Notes that the program has given a token.
  ///
  /// - Returns: Whether ``start(for:)`` must be called.
  func updated(_ token: AccessToken) -> Bool {
    let now = self.now
    return self.state.withLock { state in
      state.pending = .save(Self.stored(token, now: now, &state))
      state.isBehind = true
      defer { state.hasWorker = true }
      return !state.hasWorker
    }
  }

  /// Notes that the user has logged out.
  ///
  /// - Returns: Whether ``start(for:)`` must be called.
  func invalidated() -> Bool {
    self.state.withLock { state in
      state.pending = .clear
      state.login = nil
      state.isBehind = true
      defer { state.hasWorker = true }
      return !state.hasWorker
    }
  }

  private static func stored(_ token: AccessToken, now: Duration, _ state: inout State) -> StoredToken {
    let login = state.login ?? StoredToken.newLogin()
    state.login = login
    return StoredToken(token, expiry: token.lifetime.map { now + $0.clamped }, login: login)
  }

  /// Starts ``work()``.
  func start(for credentials: Credentials) {
    Task.detached(executorPreference: credentials.taskExecutor) {
      // A store may be reached through the same client.
      await CallContext.$current.withValue(credentials.context(within: CallContext())) { await self.work() }
    }
  }

  /// Makes the changes that come from outside of refreshes, after those of other processes.
  private func work() async {
    repeat {
      do {
        try await self.store.exclusively { await self.write() }
      } catch {
        // Without its lock, the store may not be changed.
        guard let change = self.begin() else { continue }
        self.end(change, error)
      }
    } while !self.endWork()
  }

  /// - Returns: False if there is more to do.
  private func endWork() -> Bool {
    let (isOver, waiting) = self.state.withLock { state in
      // Whoever writes now goes on with what is pending.
      let isOver = state.pending == nil || state.writing != nil
      if isOver { state.hasWorker = false }
      return (isOver, state.takeWaiting())
    }
    waiting.resume()
    return isOver
  }

  /// Makes all changes that are noted, unless another task does so now.
  func write() async {
    while let change = self.begin() {
      do {
        switch change {
        case .save(let token): try await self.store.save(token)
        case .clear: try await self.store.clear()
        }
        self.end(change, nil)
      } catch {
        self.end(change, error)
      }
    }
  }

  private func begin() -> Change? {
    self.state.withLock { state in
      guard state.writing == nil, let change = state.pending.take() else { return nil }
      state.writing = change
      return change
    }
  }

  private func end(_ change: Change, _ error: (any Error)?) {
    let failure = error.map { error in
      ConnectError(
        code: (error as? ConnectError)?.code ?? .unknown,
        message: "the credentials were not \(change.verb) the store: \(Self.text(of: error))",
        exception: error
      )
    }
    let waiting = self.state.withLock { state in
      state.writing = nil
      state.changeCount += 1
      state.failure = failure
      if failure == nil {
        state.known = change.token
        // A change that came in the meantime makes the store fall behind again.
        if state.pending == nil { state.isBehind = false }
      }
      return state.takeWaiting()
    }
    if let failure { self.logger.warning("\(failure.message ?? "")") }
    waiting.resume()
  }

  private static func text(of error: any Error) -> String {
    (error as? ConnectError)?.message ?? "\(error)"
  }

  // MARK: Waiting

  /// Waits until the store has what the credentials have.
  ///
  /// - Throws: Why the last change failed.
  func flush() async throws {
    let id = self.state.withLock { state in
      state.waitCount += 1
      return state.waitCount
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let waiting = self.state.withLock { state in
          state.waiting[id] = continuation
          return state.takeWaiting()
        }
        waiting.resume()
        if Task.isCancelled { self.cancel(id) }
      }
    } onCancel: {
      self.cancel(id)
    }
  }

  private func cancel(_ id: UInt64) {
    self.state.withLock { $0.waiting.removeValue(forKey: id) }?.resume(throwing: CancellationError())
  }
}
