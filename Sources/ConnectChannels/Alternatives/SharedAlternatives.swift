package import Connect
internal import Synchronization

/// What a client's channels, each on its own executor, have found out about HTTP/3.
package final class SharedAlternatives: Sendable {
  /// Is told on `executor` when HTTP/3 is found by other means than a response.
  private struct Listener: Sendable {
    let number: Int
    weak var opener: AlternativesOpener?
    let executor: any CallExecutor
  }

  private struct State {
    var memory: AlternativesMemory
    var listeners: [Origin: [Listener]] = [:]
    var lastNumber = 0
    /// When the network may be read again.
    var nextNetworkRead = Duration.zero
  }

  /// How long the network counts as the same.
  static let networkReadInterval = Duration.seconds(5)

  /// Names the network that the client is in now; nil if it is not known.
  let network: @Sendable () -> Int?
  private let state: Mutex<State>

  /// - Parameter network: A number that changes when the client comes into another network; nil if it cannot be told. Asked for
  ///   when a try of QUIC begins, and when connections are opened where HTTP/3 is broken, then every 5 seconds at most.
  package init(maximumOrigins: Int = 1_000, network: @escaping @Sendable () -> Int? = { nil }) {
    self.network = network
    self.state = Mutex(State(memory: AlternativesMemory(maximumOrigins: maximumOrigins)))
  }

  /// The UDP port where to try HTTP/3 now; nil for nowhere.
  ///
  /// - Parameters:
  ///   - cluster: The server's cluster; nil for the origin's own endpoints.
  ///   - server: Where the server listens for TCP.
  package func port(
    for origin: Origin,
    in cluster: String? = nil,
    at server: EndpointAddress,
    now: Duration
  ) -> Int? {
    let (choice, mayRead) = self.state.withLock { state in
      let choice = state.memory.choice(for: origin, in: cluster, at: server, now: now)
      guard case .broken = choice, state.nextNetworkRead <= now else { return (choice, false) }
      state.nextNetworkRead = now + Self.networkReadInterval
      return (choice, true)
    }
    switch choice {
    case .none:
      return nil
    case .http3(let port):
      return port
    case .broken(_, let old):
      guard mayRead, let old, let current = self.network(), current != old else { return nil }
      return self.state.withLock { state in
        state.memory.networkChanged()
        let choice = state.memory.choice(for: origin, in: cluster, at: server, now: now)
        return if case .http3(let port) = choice { port } else { nil }
      }
    }
  }

  func learn(_ field: AltSvcField, of origin: Origin, in cluster: String?, now: Duration) {
    self.state.withLock { $0.memory.learn(field, of: origin, in: cluster, now: now) }
  }

  /// An HTTPS record of the origin says that HTTP/3 is at this port. May be called from any thread.
  package func learn(port: Int, of origin: Origin, timeToLive: Duration, now: Duration) {
    let listeners = self.state.withLock { state in
      state.memory.learn(port: port, of: origin, timeToLive: timeToLive, now: now)
      return state.listeners[origin] ?? []
    }
    for listener in listeners {
      listener.executor.execute { listener.opener?.alternativesDidChange() }
    }
  }

  func failed(_ origin: Origin, _ route: QUICRoute, onlyAtServer: Bool = false, now: Duration) {
    self.state.withLock { $0.memory.failed(origin, route, onlyAtServer: onlyAtServer, now: now) }
  }

  func leftUnjudged(_ origin: Origin, _ route: QUICRoute, since start: Duration, now: Duration) {
    self.state.withLock { $0.memory.leftUnjudged(origin, route, since: start, now: now) }
  }

  func succeeded(_ origin: Origin, _ route: QUICRoute) {
    self.state.withLock { $0.memory.succeeded(origin, in: route.cluster, port: route.port, at: route.server) }
  }

  /// - Returns: A number for ``remove(_:of:)``.
  func add(_ opener: AlternativesOpener, of origin: Origin, on executor: any CallExecutor) -> Int {
    self.state.withLock { state in
      state.lastNumber += 1
      let listener = Listener(number: state.lastNumber, opener: opener, executor: executor)
      state.listeners[origin, default: []].append(listener)
      return listener.number
    }
  }

  /// Does not load the weak openers under the lock: a release of the last reference would run `deinit`, which locks
  /// again.
  func remove(_ number: Int, of origin: Origin) {
    self.state.withLock { state in
      state.listeners[origin]?.removeAll { $0.number == number }
      if state.listeners[origin]?.isEmpty == true { state.listeners[origin] = nil }
    }
  }
}
