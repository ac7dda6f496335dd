public import SwiftProtobuf

extension MessageCoding where Message: SwiftProtobuf.Message {
  /// SwiftProtobuf's messages: binary and JSON.
  public static var protobuf: MessageCoding {
    MessageCoding(
      binary: Functions(
        encode: { try ProtobufBytes.encode($0, deterministic: $1.deterministic) },
        decode: { bytes, _ in try ProtobufBytes.decode(Message.self, from: bytes) }
      ),
      json: Functions(
        encode: { try ProtobufJSON.encode($0, options: $1) },
        decode: { try ProtobufJSON.decode(Message.self, from: $0, options: $1) }
      )
    )
  }
}

extension MessageCoding where Message: Codable {
  /// Plain `Codable` types: JSON only.
  ///
  /// As far as `Codable` allows, the JSON is that of protobuf's canonical mapping, so that such types can talk to
  /// protobuf services. A `Date` is an RFC 3339 time in UTC, with milliseconds if it has any. `Data` is base64. The
  /// numbers that JSON lacks are `"NaN"`, `"Infinity"` and `"-Infinity"`. For other conventions, give the method a
  /// custom coding (``init(binary:json:)``).
  public static var codable: MessageCoding {
    MessageCoding(
      binary: nil,
      json: Functions(
        encode: { try CodableJSON.encode($0, options: $1) },
        decode: { bytes, _ in try CodableJSON.decode(Message.self, from: bytes) }
      )
    )
  }
}

extension MessageCoding {
  /// The error of a codec that needs an encoding which this family does not have.
  ///
  /// It is `internal`, as for every message that cannot be encoded: no request would work, since the client's codec and
  /// the method do not fit.
  func lacks(_ encoding: String, codecName: String) -> ConnectError {
    ConnectError(
      code: .internalError,
      message: "\(Message.self) has no \(encoding), which the codec '\(codecName)' needs"
    )
  }
}
