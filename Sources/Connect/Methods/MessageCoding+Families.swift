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
  /// The JSON is what protobuf's canonical mapping would be for the same values, as far as `Codable` goes, so
  /// that such types can talk to protobuf services: a `Date` is an RFC 3339 time in UTC with milliseconds if it
  /// has any, `Data` is base64, the numbers that JSON lacks are `"NaN"`, `"Infinity"` and `"-Infinity"`. For
  /// other conventions give a coding of your own (``init(binary:json:)``) to the method.
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
  /// It is `internal`, as for every message that cannot be encoded: nothing that the caller put in the request
  /// would make it work, the client and the method do not fit.
  func lacks(_ encoding: String, codecName: String) -> ConnectError {
    ConnectError(
      code: .internalError,
      message: "\(Message.self) has no \(encoding), which the codec '\(codecName)' needs"
    )
  }
}
