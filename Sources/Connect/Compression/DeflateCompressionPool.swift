public import NIOCore

/// `deflate`, which in HTTP is the zlib format of RFC 1950 and not the bare data of RFC 1951 (RFC 9110, section
/// 8.4.1.2). On zlib.
public struct DeflateCompressionPool: CompressionPool {
  public let name = "deflate"
  private let codec: ZlibCodec

  /// A pool with a compression level, which says how much time to spend on size. Levels out of range count as the
  /// nearest.
  ///
  /// - Parameter level: 0 (fastest) to 9 (smallest).
  public init(level: Int = 6) {
    self.codec = ZlibCodec(name: "deflate", level: level, windowBits: 15)
  }

  public func compress(_ message: ByteBuffer) throws -> ByteBuffer {
    try self.codec.compress(message)
  }

  public func decompress(_ message: ByteBuffer, maximumSize: Int) throws -> ByteBuffer {
    try self.codec.decompress(message, maximumSize: maximumSize)
  }
}
