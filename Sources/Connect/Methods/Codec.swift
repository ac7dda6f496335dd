public import NIOCore

/// Turns messages into bodies and back. The configuration's codec serves all calls of a client.
///
/// A custom codec may cast messages to its own protocol to encode them. It may also wrap another codec, for example to
/// encrypt the bytes of ``ProtoCodec``.
///
/// Bodies are `ByteBuffer`. Where another library wants Foundation's `Data`, `Data(bytes.readableBytesView)` and
/// `ByteBuffer(bytes: data)` convert, at the price of a copy.
public protocol Codec: Sendable {
  /// The subtype in the content-type: `proto`, `json`, or a name that the server knows.
  var name: String { get }

  /// The bytes of `message`.
  ///
  /// - Parameters:
  ///   - message: The message to encode. A codec may cast it to a protocol of its own.
  ///   - coding: The encodings of the message's family.
  ///   - deterministic: Whether equal messages have to give equal bytes (GET requests, cache keys).
  /// - Throws: Any error. The call fails with a ``ConnectError`` as it is; any other error becomes the cause of an
  ///   `internal` error.
  func encode<Message: Sendable>(
    _ message: Message,
    as coding: MessageCoding<Message>,
    deterministic: Bool
  ) throws -> ByteBuffer

  /// The message in `bytes`.
  ///
  /// - Throws: Any error. The call fails with a ``ConnectError`` as it is; any other error becomes the cause of an
  ///   `internal` error.
  func decode<Message: Sendable>(
    _ bytes: ByteBuffer,
    as coding: MessageCoding<Message>
  ) throws -> Message
}
