internal import Connect

/// What happens to an attempt to connect, and to the connection that comes of it.
enum ConnectionEvent {
  /// There is a connection. It takes no streams yet.
  case established
  /// The connection takes this many streams at the same time.
  case canServe(Int)
  case streamClosed
  /// The connection takes no more streams.
  ///
  /// - Parameters:
  ///   - hasServed: See ``StreamConnection/hasServed``.
  ///   - after: See ``StreamConnection/renewalCount``.
  case willClose(hasServed: Bool, after: Int?)
  /// The attempt has failed, or the connection is gone. It has no owner any more.
  case closed(AddressFailure, hasServed: Bool)
  /// It is not known whether the server is still there.
  case suspect
  /// The server of a connection that was suspect has answered.
  case alive
  /// The server of a connection with early data has answered for the first time.
  case proven
  /// A ping was answered after this time.
  case roundTrip(Duration)
}

/// Whose attempts and connections these are.
protocol ConnectionOwner: AnyObject {
  /// The server's name in errors.
  var peer: String { get }
  func connection(_ connection: PooledConnection, had event: ConnectionEvent)
}

/// An owner of attempts, one of which may bring a connection of another version of HTTP than it was for.
protocol AttemptOwner: ConnectionOwner {
  /// Whether QUIC is tried beside a connection to the same server.
  var hasUpgrade: Bool { get }
  /// Puts `candidate`, which is connected, in the place of `attempt`.
  func replace(_ attempt: PooledConnection, by candidate: PooledConnection)
}

/// An owner of connections, whose place one of another version of HTTP may take.
protocol MemberOwner: AttemptOwner {
  /// Whether the connection is open, and another one may take its place.
  func hasPlace(_ connection: PooledConnection) -> Bool
  /// Whether a connection over QUIC may replace this one, because there is none yet.
  func isReplaceable(_ connection: PooledConnection) -> Bool
  /// `new` has a connection, which takes the place of all others.
  func replaceConnections(with new: PooledConnection, streams: Int)
}
