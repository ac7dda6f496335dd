public import NIOCore

/// Turns messages into bodies and back. The configuration's codec serves all calls of a client.
///
/// Your own codec may cast messages to a protocol of yours and encode them, or wrap another codec, for example to
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
  ///   - coding: What the message's family offers.
  ///   - deterministic: Whether equal messages have to give equal bytes (GET requests, cache keys).
  /// - Throws: Any error; the call fails with `internal` and this error as its cause, or with a
  ///   ``ConnectError`` as it is.
  func encode<Message: Sendable>(
    _ message: Message,
    as coding: MessageCoding<Message>,
    deterministic: Bool
  ) throws -> ByteBuffer

  /// The message in `bytes`.
  ///
  /// - Throws: Any error; the call fails with `internal` and this error as its cause, or with a
  ///   ``ConnectError`` as it is.
  func decode<Message: Sendable>(
    _ bytes: ByteBuffer,
    as coding: MessageCoding<Message>
  ) throws -> Message
}
