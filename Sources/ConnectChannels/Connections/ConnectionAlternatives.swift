package import Connect

/// What a connection has to do with HTTP/3 at its origin.
struct ConnectionAlternatives {
  /// Nil if the client does not look for HTTP/3.
  var listener: (any AlternativesListener)?
  /// The `alt-svc` field that was read last, and when.
  var lastField: (value: String, time: Duration)?
  /// The route of a connection over QUIC that was found beside TCP.
  var route: QUICRoute?
  /// Tries another version beside the connection. Ends with the connection, or when the connection takes no more calls.
  var upgrade: (any ConnectionUpgrade)?
}

/// Is told what connections learn about HTTP/3 at an origin.
package protocol AlternativesListener: AnyObject {
  /// A response has an `alt-svc` field.
  func connection(_ connection: PooledConnection, didReceiveAltSvc headers: Headers)
  /// The server has answered a call for the first time.
  func connectionIsFit(_ connection: PooledConnection)
  /// Calls should not go to this server in this version of HTTP.
  func connectionIsUnfit(_ connection: PooledConnection, _ reason: String)
}

/// A try of another version of HTTP beside a connection.
protocol ConnectionUpgrade: AnyObject {
  /// The connection takes no more calls.
  func winnerEnded()
  /// The server of the connection, which has early data, has answered.
  func quicIsProven()
  /// The other version is no longer wanted.
  func abandon()
}
