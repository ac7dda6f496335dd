internal import Connect
internal import NIOCore

extension ConnectError {
  /// The head of a response has more than `limit` bytes, whatever of it counts as fields.
  static func headTooLarge(_ limit: Int, headerListLimit: Int) -> ConnectError {
    ConnectError(
      code: .resourceExhausted,
      message: """
        the response's head has more than \(limit) bytes, the limit of its header list is \(headerListLimit) \
        (maxHeaderListSize)
        """
    )
  }

  /// The peer does not speak HTTP/1.1, or does so wrongly.
  static func invalidHTTP1(
    _ peer: String,
    _ reason: String,
    _ cause: (any Swift.Error)? = nil
  ) -> ConnectError {
    ConnectError(
      code: .internalError,
      message: "\(peer) sent something that is not valid HTTP/1.1: \(reason)",
      exception: cause
    )
  }

  /// The error of an answer in another protocol; nil for `bytes` that may be of a response of HTTP/1.1.
  static func foreignAnswer(_ bytes: ByteBuffer, from peer: String) -> ConnectError? {
    // Other protocols begin with a control character, which no head has.
    guard let first = bytes.getInteger(at: bytes.readerIndex, as: UInt8.self), first < 0x20 else {
      return nil
    }
    return switch PeerProtocol(bytes) {
    case .http2: .answeredInHTTP2(peer)
    case .tls: .answeredInTLS(peer)
    case .http1, nil: nil
    }
  }
}
