internal import CNghttp2

/// An error code of RST_STREAM and GOAWAY (RFC 9113, section 7).
struct HTTP2ErrorCode: Hashable {
  var rawValue: UInt32

  static let noError = Self(rawValue: 0x0)
  static let protocolError = Self(rawValue: 0x1)
  static let internalError = Self(rawValue: 0x2)
  static let streamClosed = Self(rawValue: 0x5)
  static let refusedStream = Self(rawValue: 0x7)
  static let cancel = Self(rawValue: 0x8)
  static let enhanceYourCalm = Self(rawValue: 0xb)
}

extension HTTP2ErrorCode: CustomStringConvertible {
  /// The name that the specification uses, for example `REFUSED_STREAM`.
  var description: String {
    guard let name = nghttp2_http2_strerror(self.rawValue) else { return "\(self.rawValue)" }
    let text = String(cString: name)
    return text == "unknown" ? "error code 0x\(String(self.rawValue, radix: 16))" : text
  }
}
