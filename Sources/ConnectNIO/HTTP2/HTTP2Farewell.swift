internal import Connect
internal import NIOCore

/// Waits for the end of a connection that its server has given up. A server that says in GOAWAY why it cannot go on must close
/// the connection then (RFC 9113, section 5.4.1). One that does not would leave calls without an answer.
///
/// Confined to the connection's event loop.
struct HTTP2Farewell {
  /// How long the server may send nothing before it is taken to have forgotten the connection.
  private static let limit = TimeAmount.seconds(2)

  private var hasBegun = false

  mutating func begin(for connection: HTTP2Connection, after goAway: HTTP2GoAway) {
    guard !self.hasBegun, goAway.errorCode != .noError else { return }
    self.hasBegun = true
    Self.look(at: connection, "\(goAway)")
  }

  private static func look(at connection: HTTP2Connection, _ reason: String) {
    let readCount = connection.peerWatch.readCount
    connection.state.eventLoop.assumeIsolated().scheduleTask(in: self.limit) {
      guard connection.state.phase == .active else { return }
      guard connection.peerWatch.readCount == readCount else { return self.look(at: connection, reason) }
      let message = "\(connection.state.peer) ended the HTTP/2 connection and did not close it: \(reason)"
      connection.shutDown(ConnectError(code: .unavailable, message: message), sending: .noError)
    }
  }
}
