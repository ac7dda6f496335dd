import Connect
import NIOCore

extension MessageCoding<ByteBuffer> {
  /// Bytes as they are, in both codecs.
  static var bytes: MessageCoding<ByteBuffer> {
    MessageCoding(
      binary: .init(encode: { bytes, _ in bytes }, decode: { bytes, _ in bytes }),
      json: .init(encode: { bytes, _ in bytes }, decode: { bytes, _ in bytes })
    )
  }
}
