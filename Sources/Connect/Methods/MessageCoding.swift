public import NIOCore

/// How the messages of one type are coded: by which encodings, and with which functions.
///
/// Each family of messages has one: ``protobuf`` for SwiftProtobuf's messages, ``codable`` for plain `Codable` types.
/// Other modules add theirs with ``init(binary:json:)``.
public final class MessageCoding<Message: Sendable>: Sendable {
  /// The functions that encode and decode messages in one encoding. `Options` are the codec's.
  public struct Functions<Options: Sendable>: Sendable {
    /// The bytes of a message. May throw any error: the call fails with a ``ConnectError`` as it is; any other error
    /// becomes the cause of an `internal` error.
    public let encode: @Sendable (Message, Options) throws -> ByteBuffer
    /// The message in some bytes. May throw as ``encode`` may.
    public let decode: @Sendable (ByteBuffer, Options) throws -> Message

    /// Functions that are called from any thread, for several messages at the same time.
    public init(
      encode: @escaping @Sendable (Message, Options) throws -> ByteBuffer,
      decode: @escaping @Sendable (ByteBuffer, Options) throws -> Message
    ) {
      self.encode = encode
      self.decode = decode
    }
  }

  /// Protobuf's binary encoding; nil if the family has none.
  public let binary: Functions<BinaryCodingOptions>?
  /// JSON (for protobuf messages, its canonical mapping); nil if the family has none.
  public let json: Functions<JSONCodingOptions>?

  /// The coding of a family of messages. A call with a codec whose encoding the family lacks fails with `internal`.
  public init(binary: Functions<BinaryCodingOptions>?, json: Functions<JSONCodingOptions>?) {
    self.binary = binary
    self.json = json
  }
}

/// What ``ProtoCodec`` asks of a family's binary encoding.
public struct BinaryCodingOptions: Sendable, Hashable {
  /// Equal messages give equal bytes.
  public var deterministic: Bool

  /// Options for a family's binary encoding.
  public init(deterministic: Bool = false) {
    self.deterministic = deterministic
  }
}

/// What ``JSONCodec`` asks of a family's JSON encoding.
public struct JSONCodingOptions: Sendable, Hashable {
  /// Equal messages give equal bytes. One exception: SwiftProtobuf writes the fields of a `google.protobuf.Struct`
  /// in any order.
  public var deterministic: Bool
  /// Write enum values as numbers. Protobuf messages only.
  public var alwaysPrintEnumsAsInts: Bool
  /// Write field names as in the proto file, not in lowerCamelCase. Protobuf messages only.
  public var preserveProtoFieldNames: Bool
  /// Skip fields that the type does not have, instead of failing. Plain `Codable` types always do.
  public var ignoreUnknownFields: Bool

  /// Options for a family's JSON encoding. By default unknown fields are skipped, and all else is as protobuf's JSON
  /// mapping has it.
  public init(
    deterministic: Bool = false,
    alwaysPrintEnumsAsInts: Bool = false,
    preserveProtoFieldNames: Bool = false,
    ignoreUnknownFields: Bool = true
  ) {
    self.deterministic = deterministic
    self.alwaysPrintEnumsAsInts = alwaysPrintEnumsAsInts
    self.preserveProtoFieldNames = preserveProtoFieldNames
    self.ignoreUnknownFields = ignoreUnknownFields
  }
}
