package import Connect
package import ConnectChannels
internal import Synchronization

/// What lies between the channels of an ``InMemoryTransport`` and its servers: which addresses refuse connections, and the
/// connections that are open.
package final class InMemoryNetwork: Sendable {
  private struct State {
    /// Whether addresses that are not in `refusals` refuse connections.
    var refusesAll = false
    var refusals: [EndpointAddress: Bool] = [:]
    /// By number, which is also the order in which they were opened.
    var connections: [Int: Confined<InMemoryConnection>] = [:]
    var openedCount = 0
  }

  /// The address of the only server if there is no resolver. Calls and handlers do not see it.
  static let onlyAddress = EndpointAddress.unix(path: "memory")

  let server: InMemoryServer
  private let state = Mutex(State())

  package init(_ server: InMemoryServer) {
    self.server = server
  }

  private var executor: any CallExecutor { self.server.executor }

  // MARK: Connections

  /// Connects, or refuses to. On the executor.
  ///
  /// - Parameters:
  ///   - origin: The origin of the channel that connects, for errors.
  ///   - requiresHTTP2: Whether the connection's streams must go over HTTP/2.
  ///   - clientZone: The client's zone.
  ///   - streamLimit: How many streams the server takes before it renews the connection; nil for any number.
  /// - Returns: The connection; nil if it was refused, or is not wanted any more.
  @discardableResult
  package func connect(
    _ attempt: PooledConnection,
    to origin: Origin,
    requiresHTTP2: Bool,
    from clientZone: String? = nil,
    streamLimit: Int? = nil
  ) -> InMemoryConnection? {
    guard attempt.isWanted else { return nil }
    let address = attempt.address
    let number = self.state.withLock { state -> Int? in
      guard !(state.refusals[address] ?? state.refusesAll) else { return nil }
      state.openedCount += 1
      return state.openedCount
    }
    guard let number else {
      let place = address == Self.onlyAddress ? "" : "\(address): "
      let message = "cannot connect to \(origin) (\(place)connection refused)"
      attempt.closed(ConnectError(code: .unavailable, message: message), reason: "connection refused")
      return nil
    }
    let route = InMemoryRoute(
      number: number,
      address: address,
      requiresHTTP2: requiresHTTP2,
      clientZone: clientZone,
      streamLimit: streamLimit
    )
    let connection = InMemoryConnection(route, in: self, delegate: attempt)
    self.state.withLock { $0.connections[number] = Confined(connection, to: self.executor) }
    attempt.established(connection, version: .http2)
    attempt.connection(connection, canServe: .max)
    return connection
  }

  /// The open connections in the order in which they were opened. On the executor.
  package var connections: [InMemoryConnection] {
    self.state.withLock { $0.connections }.sorted { $0.key < $1.key }.map { $0.value.value }
  }

  /// The connection has ended.
  func forget(_ number: Int) {
    // Released outside of the lock.
    _ = self.state.withLock { $0.connections.removeValue(forKey: number) }
  }

  /// Ends all connections, for both sides. On the executor.
  package func endConnections() {
    for connection in self.connections { connection.disconnect() }
  }

  // MARK: Misbehaviour

  /// - Parameter address: Nil for all addresses.
  package func setRefusal(_ refuses: Bool, at address: EndpointAddress?) {
    self.state.withLock { state in
      if let address {
        state.refusals[address] = refuses
      } else {
        state.refusals = [:]
        state.refusesAll = refuses
      }
    }
  }

  /// Calls `work` later for each open connection to an address: the caller may be inside a function of a call.
  ///
  /// - Parameter address: Nil for all addresses.
  package func forEachConnection(
    to address: EndpointAddress?,
    _ work: @escaping @Sendable (InMemoryConnection) -> Void
  ) {
    self.executor.execute {
      let connections = self.state.withLock { $0.connections }.sorted { $0.key < $1.key }
      for (_, connection) in connections where address == nil || connection.value.route.address == address {
        work(connection.value)
      }
    }
  }
}

/// Opens the connections of one channel.
struct InMemoryOpener: ConnectionOpener {
  let network: InMemoryNetwork
  let origin: Origin
  /// Whether the channel's streams must go over HTTP/2.
  let requiresHTTP2: Bool

  func open(_ attempt: PooledConnection) {
    let executor = self.network.server.executor
    let opening = Confined((self, attempt), to: executor)
    executor.execute {
      let (opener, attempt) = opening.value
      opener.network.connect(attempt, to: opener.origin, requiresHTTP2: opener.requiresHTTP2)
    }
  }
}
