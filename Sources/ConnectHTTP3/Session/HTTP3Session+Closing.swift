internal import CGnuTLS
internal import CNghttp3
internal import CNgtcp2
internal import NIOCore

extension HTTP3Session {
  /// The most bytes of a peer's reason that are kept.
  private static let reasonLimit = 256

  /// Takes note of why libngtcp2 cannot go on.
  func end(transportError: Int32) {
    guard self.ending == nil, let connection = self.connection else { return }
    switch transportError {
    case NGTCP2_ERR_DRAINING:
      self.ending = self.endingByPeer(connection)
    case NGTCP2_ERR_IDLE_CLOSE:
      self.ending = .idle
    case NGTCP2_ERR_RECV_VERSION_NEGOTIATION:
      self.ending = .noCommonVersion
    case NGTCP2_ERR_CRYPTO:
      let alert = ngtcp2_conn_get_tls_alert(connection)
      self.ending = .tls(alert: alert, libraryError: ngtcp2_conn_get_tls_error(connection))
    case NGTCP2_ERR_CALLBACK_FAILURE where self.httpError != 0:
      self.ending = .http(libraryError: self.httpError)
    default:
      self.ending = .transport(libraryError: transportError)
    }
  }

  /// Takes note of why libnghttp3 cannot go on.
  func end(httpError: Int32) {
    self.ending = self.ending ?? .http(libraryError: httpError)
  }

  private func endingByPeer(_ connection: OpaquePointer) -> HTTP3Ending {
    let close = connect_ngtcp2_get_close(connection)
    let reason = String(
      decoding: UnsafeBufferPointer(
        start: close.reason,
        count: close.reason == nil ? 0 : min(close.reason_length, Self.reasonLimit)
      ),
      as: UTF8.self
    )
    if close.kind == CONNECT_NGTCP2_CLOSE_APPLICATION.rawValue {
      return .closedByPeer(HTTP3ErrorCode(rawValue: close.error_code), reason: reason)
    }
    return .brokenByPeer(QUICErrorCode(rawValue: close.error_code), reason: reason)
  }

  /// The datagram that tells the peer of the end; nil if the peer is not to be told. It has `errorCode` if the session
  /// has not ended by itself. Nothing is to be sent after it.
  func closingDatagram(_ errorCode: HTTP3ErrorCode, now: UInt64) -> ByteBuffer? {
    guard let connection = self.connection else { return nil }
    var libraryError: Int32 = 0
    var alert: Int32 = -1
    var code = errorCode
    switch self.ending {
    case .closedByPeer, .brokenByPeer, .statelessReset, .noCommonVersion, .idle, .closed: return nil
    case .transport(let error): libraryError = error
    case .tls(let value, _): alert = Int32(value)
    case .http(let error): code = HTTP3ErrorCode(rawValue: nghttp3_err_infer_quic_app_error_code(error))
    case nil: self.ending = .closed(errorCode)
    }
    var buffer = ByteBuffer()
    let count = buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: Self.maximumDatagram) { bytes in
      let result = connect_ngtcp2_write_close(
        connection,
        bytes.baseAddress?.assumingMemoryBound(to: UInt8.self),
        Self.maximumDatagram,
        libraryError,
        alert,
        code.rawValue,
        now
      )
      return max(0, Int(result))
    }
    return count > 0 ? buffer : nil
  }

  /// What a library says of one of its errors.
  static func text(http error: Int32) -> String { String(cString: nghttp3_strerror(error)) }
  static func text(transport error: Int32) -> String { String(cString: ngtcp2_strerror(error)) }
  static func text(tls error: Int32) -> String { String(cString: gnutls_strerror(error)) }
}
