internal import Connect

/// An error code of HTTP/3: of RESET_STREAM, STOP_SENDING and CONNECTION_CLOSE (RFC 9114, section 8.1; RFC 9204, section 6).
struct HTTP3ErrorCode: Hashable {
  var rawValue: UInt64

  static let noError = Self(rawValue: 0x100)
  static let generalProtocolError = Self(rawValue: 0x101)
  static let internalError = Self(rawValue: 0x102)
  static let excessiveLoad = Self(rawValue: 0x107)
  static let requestRejected = Self(rawValue: 0x10b)
  static let requestCancelled = Self(rawValue: 0x10c)
  static let messageError = Self(rawValue: 0x10e)
}

extension HTTP3ErrorCode: CustomStringConvertible {
  /// The name that the specification uses, for example `H3_REQUEST_REJECTED`.
  var description: String {
    Self.names[self.rawValue] ?? "error code 0x\(String(self.rawValue, radix: 16))"
  }

  private static let names: [UInt64: String] = [
    0x100: "H3_NO_ERROR",
    0x101: "H3_GENERAL_PROTOCOL_ERROR",
    0x102: "H3_INTERNAL_ERROR",
    0x103: "H3_STREAM_CREATION_ERROR",
    0x104: "H3_CLOSED_CRITICAL_STREAM",
    0x105: "H3_FRAME_UNEXPECTED",
    0x106: "H3_FRAME_ERROR",
    0x107: "H3_EXCESSIVE_LOAD",
    0x108: "H3_ID_ERROR",
    0x109: "H3_SETTINGS_ERROR",
    0x10a: "H3_MISSING_SETTINGS",
    0x10b: "H3_REQUEST_REJECTED",
    0x10c: "H3_REQUEST_CANCELLED",
    0x10d: "H3_REQUEST_INCOMPLETE",
    0x10e: "H3_MESSAGE_ERROR",
    0x10f: "H3_CONNECT_ERROR",
    0x110: "H3_VERSION_FALLBACK",
    0x200: "QPACK_DECOMPRESSION_FAILED",
    0x201: "QPACK_ENCODER_STREAM_ERROR",
    0x202: "QPACK_DECODER_STREAM_ERROR",
  ]
}

extension Code {
  /// The code of a stream or a connection that ends with `code`, as gRPC over HTTP/3 has it (gRPC proposal G2).
  init(_ code: HTTP3ErrorCode) {
    switch code {
    case .excessiveLoad: self = .resourceExhausted
    case .requestRejected: self = .unavailable
    case .requestCancelled: self = .canceled
    default: self = .internalError
    }
  }
}
