public import NIOCore

/// Protobuf's binary encoding, content-type subtype `proto`. The default codec.
///
/// Serves every family of messages that has a ``MessageCoding/binary`` encoding; plain `Codable` types have
/// none.
public struct ProtoCodec: Codec {
  public let name = "proto"
  /// Whether equal messages give equal bytes in every request, not only where a call asks for it.
  public let deterministic: Bool

  /// A codec for protobuf's binary encoding.
  public init(deterministic: Bool = false) {
    self.deterministic = deterministic
  }

  public func encode<Message: Sendable>(
    _ message: Message,
    as coding: MessageCoding<Message>,
    deterministic: Bool
  ) throws -> ByteBuffer {
    guard let binary = coding.binary else { throw coding.lacks("binary encoding", codecName: self.name) }
    return try binary.encode(
      message,
      BinaryCodingOptions(deterministic: deterministic || self.deterministic)
    )
  }

  public func decode<Message: Sendable>(
    _ bytes: ByteBuffer,
    as coding: MessageCoding<Message>
  ) throws -> Message {
    guard let binary = coding.binary else { throw coding.lacks("binary encoding", codecName: self.name) }
    return try binary.decode(bytes, BinaryCodingOptions(deterministic: self.deterministic))
  }
}
