public import NIOCore

/// JSON, content-type subtype `json`: protobuf's canonical mapping for protobuf messages, `Codable`'s for
/// plain Swift types.
public struct JSONCodec: Codec {
  public let name = "json"
  /// How messages are written and read.
  public let options: JSONCodingOptions

  /// A codec with these options.
  public init(options: JSONCodingOptions) {
    self.options = options
  }

  /// See ``JSONCodingOptions`` for the parameters.
  public init(
    deterministic: Bool = false,
    alwaysPrintEnumsAsInts: Bool = false,
    preserveProtoFieldNames: Bool = false,
    ignoreUnknownFields: Bool = true
  ) {
    self.options = JSONCodingOptions(
      deterministic: deterministic,
      alwaysPrintEnumsAsInts: alwaysPrintEnumsAsInts,
      preserveProtoFieldNames: preserveProtoFieldNames,
      ignoreUnknownFields: ignoreUnknownFields
    )
  }

  public func encode<Message: Sendable>(
    _ message: Message,
    as coding: MessageCoding<Message>,
    deterministic: Bool
  ) throws -> ByteBuffer {
    guard let json = coding.json else { throw coding.lacks("JSON encoding", codecName: self.name) }
    var options = self.options
    options.deterministic = options.deterministic || deterministic
    return try json.encode(message, options)
  }

  public func decode<Message: Sendable>(
    _ bytes: ByteBuffer,
    as coding: MessageCoding<Message>
  ) throws -> Message {
    guard let json = coding.json else { throw coding.lacks("JSON encoding", codecName: self.name) }
    return try json.decode(bytes, self.options)
  }
}
