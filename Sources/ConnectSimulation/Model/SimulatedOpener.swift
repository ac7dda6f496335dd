internal import Connect
internal import ConnectChannels
internal import ConnectTesting

/// Opens the connections of one simulated client's channel.
struct SimulatedOpener: ConnectionOpener {
  let cluster: WeakCluster
  let origin: Origin
  let zone: String
  let requiresHTTP2: Bool

  func open(_ attempt: PooledConnection) {
    guard let cluster = self.cluster.value else { return }
    let opening = Opening(self, attempt, limit: cluster.executor.now + attempt.timeLimit)
    let time = cluster.network.sampleRoundTrip() + cluster.network.sampleRoundTrip()
    opening.look(after: time, on: cluster.executor)
  }
}

struct WeakCluster {
  weak var value: SimulatedCluster?
}

/// `@unchecked Sendable`: touched on the simulation's executor alone.
private final class Opening: @unchecked Sendable {
  /// How often a lost packet is sent again.
  private static let pause = Duration.seconds(1)

  private let opener: SimulatedOpener
  private let attempt: PooledConnection
  private let limit: Duration

  init(_ opener: SimulatedOpener, _ attempt: PooledConnection, limit: Duration) {
    self.opener = opener
    self.attempt = attempt
    self.limit = limit
  }

  func look(after delay: Duration, on executor: SimulationExecutor) {
    let time = min(delay, max(self.limit - executor.now, .zero))
    _ = executor.schedule(after: time) { self.look() }
  }

  private func look() {
    guard self.attempt.isWanted, let cluster = self.opener.cluster.value else { return }
    let address = self.attempt.address
    guard let server = cluster.server(at: address) else {
      self.fail("cannot connect to \(self.opener.origin) (\(address): no route to host)", "no route to host")
      return
    }
    let isReachable = !cluster.network.separates(self.opener.zone, server.zone) && !server.isFrozen
    if isReachable {
      let connection = server.network.connect(
        self.attempt,
        to: self.opener.origin,
        requiresHTTP2: self.opener.requiresHTTP2,
        from: self.opener.zone,
        streamLimit: server.maximumRequestsPerConnection.map { max($0, 1) }
      )
      cluster.recorder.note(connection == nil ? "refused" : "connected", at: server.index)
      guard let connection else { return }
      let test = PeerTest(server, cluster)
      connection.onCallGivenUp = { test.callWasGivenUp(on: $0) }
      if let age = server.maximumConnectionAge {
        let aging = Confined(WeakConnection(connection), to: cluster.executor)
        _ = cluster.executor.schedule(after: max(age.clamped, .milliseconds(1))) {
          aging.value.value?.goAway()
        }
      }
    } else if cluster.executor.now >= self.limit {
      self.fail("connecting to \(self.opener.origin) timed out (\(address))", "timed out")
    } else {
      self.look(after: Self.pause, on: cluster.executor)
    }
  }

  private func fail(_ message: String, _ reason: String) {
    self.attempt.closed(ConnectError(code: .unavailable, message: message), reason: reason)
  }
}

private struct WeakConnection {
  weak var value: InMemoryConnection?

  init(_ value: InMemoryConnection) {
    self.value = value
  }
}

/// Tests a connection as `NIOHTTPClient` does over HTTP/2: when a call has timed out, or was cancelled, the connection needs
/// an answer to a ping before it serves the next call.
///
/// `@unchecked Sendable`: touched on the simulation's executor alone.
private final class PeerTest: @unchecked Sendable {
  private static let pause = Duration.seconds(1)
  private static let limit = Duration.seconds(20)

  private weak var server: SimulatedServer?
  private weak var cluster: SimulatedCluster?
  private var isUnderWay = false

  init(_ server: SimulatedServer, _ cluster: SimulatedCluster) {
    self.server = server
    self.cluster = cluster
  }

  func callWasGivenUp(on connection: InMemoryConnection) {
    guard !self.isUnderWay, let cluster = self.cluster, !self.isAnswered(connection) else { return }
    self.isUnderWay = true
    connection.suspect()
    self.look(at: Confined(connection, to: cluster.executor), end: cluster.executor.now + Self.limit)
  }

  private func look(at connection: Confined<InMemoryConnection>, end: Duration) {
    _ = self.cluster?.executor.schedule(after: Self.pause) {
      guard let cluster = self.cluster, connection.value.isOpen else { return }
      if self.isAnswered(connection.value) {
        self.isUnderWay = false
        connection.value.isAlive()
      } else if cluster.executor.now >= end {
        let message =
          "the server sent nothing while it had calls to answer, and did not answer a ping within \(Self.limit)"
        connection.value.disconnect(ConnectError(code: .unavailable, message: message))
      } else {
        self.look(at: connection, end: end)
      }
    }
  }

  private func isAnswered(_ connection: InMemoryConnection) -> Bool {
    guard let server = self.server, let cluster = self.cluster else { return false }
    return !server.isFrozen && !cluster.network.separates(connection.route.clientZone ?? "", server.zone)
  }
}
