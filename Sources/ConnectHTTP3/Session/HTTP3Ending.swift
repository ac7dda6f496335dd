internal import CGnuTLS
internal import CNghttp3
internal import CNgtcp2

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

extension HTTP3Ending {
  /// The most bytes of a peer's reason that are kept.
  private static let reasonLimit = 256

  /// What the peer of libngtcp2's `connection` has closed it with.
  init(byPeer connection: OpaquePointer) {
    let close = connect_ngtcp2_get_close(connection)
    let reason = String(
      decoding: UnsafeBufferPointer(
        start: close.reason,
        count: close.reason == nil ? 0 : min(close.reason_length, Self.reasonLimit)
      ),
      as: UTF8.self
    )
    self =
      close.kind == CONNECT_NGTCP2_CLOSE_APPLICATION.rawValue
      ? .closedByPeer(HTTP3ErrorCode(rawValue: close.error_code), reason: reason)
      : .brokenByPeer(QUICErrorCode(rawValue: close.error_code), reason: reason)
  }
}

/// What a library says of one of its errors.
enum LibraryText {
  static func http(_ error: Int32) -> String { String(cString: nghttp3_strerror(error)) }
  static func transport(_ error: Int32) -> String { String(cString: ngtcp2_strerror(error)) }
  static func tls(_ error: Int32) -> String { String(cString: gnutls_strerror(error)) }
}
