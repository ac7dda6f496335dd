public import NIOCore

/// `gzip`, RFC 1952, which all servers know. On zlib.
public struct GzipCompressionPool: CompressionPool {
  public let name = "gzip"
  private let codec: ZlibCodec

  /// A pool with a compression level, which says how much time to spend on size. Levels out of range count as the
  /// nearest.
  ///
  /// - Parameter level: 0 (fastest) to 9 (smallest).
  public init(level: Int = 6) {
    self.codec = ZlibCodec(name: "gzip", level: level, windowBits: 31)
  }

  public func compress(_ message: ByteBuffer) throws -> ByteBuffer {
    try self.codec.compress(message)
  }

  public func decompress(_ message: ByteBuffer, maximumSize: Int) throws -> ByteBuffer {
    try self.codec.decompress(message, maximumSize: maximumSize)
  }
}
