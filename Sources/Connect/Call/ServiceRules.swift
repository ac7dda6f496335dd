internal import Synchronization

/// An endpoint that knows its service's rules for calls, or finds them out together with the addresses.
package protocol RuledEndpoint: HTTPEndpoint {
  var serviceRules: ServiceRules { get }

  /// A call has begun to wait for the rules; now `count` calls wait. Called on the executor.
  ///
  /// - Returns: Why this call cannot wait; nil if it can.
  func callsWaitForRules(_ count: Int) -> ConnectError?
}

/// The rules of a service for its methods, as far as an endpoint knows them.
///
/// All functions are called on the endpoint's executor. The state is still behind a mutex, without contention, to be
/// `Sendable`.
package final class ServiceRules: Sendable {
  package typealias LookUp = @Sendable (MethodInfo) -> MethodRules?
  /// Finds what gives rules to each call of a method.
  package typealias RouteLookUp = @Sendable (MethodInfo) -> any CallRouter

  /// A call's wait for its rules.
  struct Wait {
    fileprivate let rules: ServiceRules
    fileprivate let number: Int

    func cancel() {
      _ = self.rules.state.withLock { $0.waiting.removeValue(forKey: self.number) }
    }
  }

  private struct Waiter {
    let method: MethodInfo
    let headers: Headers
    let isPatient: Bool
    let goOn: @Sendable (CallRules) -> Void
  }

  /// What the rules say of a method.
  fileprivate enum Found {
    /// The same for all calls.
    case constant(CallRules)
    /// Each call is asked for.
    case router(any CallRouter)
  }

  private struct State {
    /// Nil if there are no rules.
    var lookUp: (@Sendable (MethodInfo) -> Found)?
    /// The looked-up rules.
    var found = FoundRules()
    var isExpected = false
    /// Whether the last update has failed. Calls that are not patient then go on without it.
    var hasFailed = false
    var waiting: [Int: Waiter] = [:]
    var lastNumber = 0

    mutating func takeWaiting(_ isTaken: (Waiter) -> Bool = { _ in true }) -> [Waiter] {
      let numbers = self.waiting.keys.filter { self.waiting[$0].map(isTaken) ?? false }.sorted()
      return numbers.compactMap { self.waiting.removeValue(forKey: $0) }
    }
  }

  private let state = Mutex(State())
  /// Outside the mutex, so that calls of services without rules take no lock.
  private let inUse = Atomic(false)

  /// No rules, and none are expected.
  package init() {}

  // MARK: For the endpoint

  /// These are the rules from now on. Calls that wait go on with them.
  ///
  /// - Parameter lookUp: Nil for no rules. Asked once for each method.
  package func update(_ lookUp: LookUp?) {
    guard let lookUp else {
      self.replace(with: nil)
      return
    }
    self.replace { .constant(.method(lookUp($0))) }
  }

  /// From now on each call gets its rules by itself. Calls that wait go on with them.
  ///
  /// - Parameter lookUp: Asked once for each method.
  package func update(routing lookUp: @escaping RouteLookUp) {
    self.replace { method in
      let router = lookUp(method)
      if let rules = router.constantRules { return .constant(rules) }
      return .router(router)
    }
  }

  private func replace(with lookUp: (@Sendable (MethodInfo) -> Found)?) {
    // Released outside of the mutex: the last reference to a cluster calls out.
    let before = self.state.withLock { ($0.lookUp, $0.found) }
    withExtendedLifetime(before) {
      self.goOn { state in
        state.lookUp = lookUp
        state.found = FoundRules()
        state.isExpected = false
        return state.takeWaiting()
      }
    }
  }

  /// The rules may have changed: calls wait until the endpoint says so.
  package func expectUpdate() {
    self.goOn { state in
      state.isExpected = true
      state.hasFailed = false
      return []
    }
  }

  /// No update is available at the moment. Calls go on with the known rules, except calls that wait for a reachable
  /// server.
  package func updateFailed() {
    self.goOn { state in
      state.hasFailed = true
      return state.takeWaiting { !$0.isPatient }
    }
  }

  /// No update will come: calls go on with the rules that are known.
  package func stopExpecting() {
    self.goOn { state in
      state.isExpected = false
      return state.takeWaiting()
    }
  }

  package var waitingCount: Int { self.state.withLock { $0.waiting.count } }

  private func goOn(_ change: (inout State) -> [Waiter]) {
    let (waiting, areInUse) = self.state.withLock { state in
      let waiting = change(&state)
      return (waiting, state.isExpected || state.lookUp != nil)
    }
    self.inUse.store(areInUse, ordering: .relaxed)
    for waiter in waiting { waiter.goOn(self.find(waiter.method, waiter.headers)) }
  }

  // MARK: For calls

  /// Whether there are rules, or may be some.
  var areInUse: Bool { self.inUse.load(ordering: .relaxed) }

  /// What holds for a call; nil if the call has to wait for it.
  ///
  /// - Parameters:
  ///   - headers: Those that the caller sends.
  ///   - isPatient: Whether the call waits for a server that can be reached.
  func rules(for method: MethodInfo, _ headers: Headers, isPatient: Bool) -> CallRules? {
    let (isExpected, found) = self.state.withLock { state in
      state.isExpected && (isPatient || !state.hasFailed) ? (true, nil) : (false, state.found[method.path])
    }
    if isExpected { return nil }
    return (found ?? self.lookUp(method)).rules(headers)
  }

  /// What holds for a request that has no rules yet, as far as that is known.
  package func rules(for method: MethodInfo, _ headers: Headers) -> CallRules { self.find(method, headers) }

  /// Lets a call wait.
  ///
  /// - Parameter goOn: Called with the rules once they are known, unless the wait is cancelled.
  func wait(
    for method: MethodInfo,
    _ headers: Headers,
    isPatient: Bool,
    _ goOn: @escaping @Sendable (CallRules) -> Void
  ) -> (Wait, count: Int) {
    self.state.withLock { state in
      state.lastNumber += 1
      state.waiting[state.lastNumber] = Waiter(
        method: method,
        headers: headers,
        isPatient: isPatient,
        goOn: goOn
      )
      return (Wait(rules: self, number: state.lastNumber), state.waiting.count)
    }
  }

  private func find(_ method: MethodInfo, _ headers: Headers) -> CallRules {
    (self.state.withLock { $0.found[method.path] } ?? self.lookUp(method)).rules(headers)
  }

  private func lookUp(_ method: MethodInfo) -> Found {
    let rules = self.state.withLock { $0.lookUp }?(method) ?? .constant(.method(nil))
    self.state.withLock { $0.found[method.path] = rules }
    return rules
  }
}

extension ServiceRules.Found {
  func rules(_ headers: Headers) -> CallRules {
    switch self {
    case .constant(let rules): rules
    case .router(let router): router.rules(forHeaders: headers)
    }
  }
}

/// The rules of the methods that were looked up, by path.
private struct FoundRules {
  /// More methods than a service has.
  private static let maximum = 1_000
  /// For so few, comparing paths takes fewer steps than hashing one.
  private static let maximumFirst = 8

  private var first: [(path: String, found: ServiceRules.Found)] = []
  private var others: [String: ServiceRules.Found] = [:]

  subscript(path: String) -> ServiceRules.Found? {
    get {
      // By index: a closure would be given a copy of each one.
      for index in self.first.indices where self.first[index].path == path { return self.first[index].found }
      return self.others.isEmpty ? nil : self.others[path]
    }
    set {
      guard let newValue else { return }
      if let index = self.first.firstIndex(where: { $0.path == path }) {
        self.first[index].found = newValue
      } else if self.first.count < Self.maximumFirst {
        self.first.append((path, newValue))
      } else {
        if self.others.count >= Self.maximum { self.others.removeAll() }
        self.others[path] = newValue
      }
    }
  }
}
