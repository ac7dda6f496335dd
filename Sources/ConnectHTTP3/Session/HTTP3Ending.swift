internal import Connect

/// How a session came to its end.
enum HTTP3Ending: Equatable {
  /// The peer has closed the connection with an error code of HTTP/3, which may say that all is in order.
  case closedByPeer(HTTP3ErrorCode, reason: String)
  /// The peer has closed the connection with an error code of QUIC.
  case brokenByPeer(QUICErrorCode, reason: String)
  /// The peer knows nothing of the connection.
  case statelessReset
  /// The peer does not speak QUIC version 1.
  case noCommonVersion
  /// Nothing was received for the time after which both sides forget the connection.
  case idle
  /// TLS could not go on. The alert is what the peer is told.
  case tls(alert: UInt8, libraryError: Int32)
  /// The peer broke QUIC, or libngtcp2 could not go on for another reason: its error code.
  case transport(libraryError: Int32)
  /// The peer broke HTTP/3, or libnghttp3 could not go on for another reason: its error code.
  case http(libraryError: Int32)
  /// The connection was closed by us with this code.
  case closed(HTTP3ErrorCode)
}
