import Connect
import NIOCore

/// ``JSONCodec`` that counts its uses.
final class CountingCodec: Codec {
  private let count = Box(0)

  var encodes: Int { self.count.value }
  var name: String { "json" }

  func encode<Message: Sendable>(
    _ message: Message,
    as coding: MessageCoding<Message>,
    deterministic: Bool
  ) throws -> ByteBuffer {
    _ = self.count.increment()
    return try JSONCodec().encode(message, as: coding, deterministic: deterministic)
  }

  func decode<Message: Sendable>(_ bytes: ByteBuffer, as coding: MessageCoding<Message>) throws -> Message {
    try JSONCodec().decode(bytes, as: coding)
  }
}
