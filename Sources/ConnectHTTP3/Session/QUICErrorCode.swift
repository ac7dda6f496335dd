/// An error code of QUIC itself, of CONNECTION_CLOSE (RFC 9000, section 20.1).
struct QUICErrorCode: Hashable {
  var rawValue: UInt64

  static let noError = Self(rawValue: 0x0)
  static let internalError = Self(rawValue: 0x1)
  static let connectionRefused = Self(rawValue: 0x2)

  /// The TLS alert that the code stands for (RFC 9001, section 4.8); nil if it stands for none.
  var alert: UInt8? {
    (0x100...0x1ff).contains(self.rawValue) ? UInt8(self.rawValue - 0x100) : nil
  }
}

extension QUICErrorCode: CustomStringConvertible {
  /// The name that the specification uses, for example `FLOW_CONTROL_ERROR`.
  var description: String {
    if let alert = self.alert { return "CRYPTO_ERROR, TLS alert \(alert)" }
    return Self.names[self.rawValue] ?? "error code 0x\(String(self.rawValue, radix: 16))"
  }

  private static let names: [UInt64: String] = [
    0x0: "NO_ERROR",
    0x1: "INTERNAL_ERROR",
    0x2: "CONNECTION_REFUSED",
    0x3: "FLOW_CONTROL_ERROR",
    0x4: "STREAM_LIMIT_ERROR",
    0x5: "STREAM_STATE_ERROR",
    0x6: "FINAL_SIZE_ERROR",
    0x7: "FRAME_ENCODING_ERROR",
    0x8: "TRANSPORT_PARAMETER_ERROR",
    0x9: "CONNECTION_ID_LIMIT_ERROR",
    0xa: "PROTOCOL_VIOLATION",
    0xb: "INVALID_TOKEN",
    0xc: "APPLICATION_ERROR",
    0xd: "CRYPTO_BUFFER_EXCEEDED",
    0xe: "KEY_UPDATE_ERROR",
    0xf: "AEAD_LIMIT_REACHED",
    0x10: "NO_VIABLE_PATH",
  ]
}
