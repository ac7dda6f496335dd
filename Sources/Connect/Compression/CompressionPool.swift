public import NIOCore

/// A way to compress messages: its name on the wire, and both directions.
///
/// It compresses each message independently, and is called from any thread. The name "pool" comes from the Connect
/// ecosystem. An implementation reuses its contexts, since to set one up costs more than to compress a small message.
///
/// ``GzipCompressionPool`` and ``DeflateCompressionPool`` are always available. The package traits `Brotli`, `Zstd` and
/// `Snappy` add pools of these names. A custom pool works like the built-in ones.
public protocol CompressionPool: Sendable {
  /// The encoding's name in headers, in lower case: `gzip`.
  var name: String { get }

  /// The compressed form of `message`, which may be empty.
  ///
  /// - Throws: Any error. The call fails with a ``ConnectError`` as it is; any other error becomes the cause of an
  ///   `internal` error.
  func compress(_ message: ByteBuffer) throws -> ByteBuffer

  /// The decompressed form of `message`, which is not empty.
  ///
  /// - Parameters:
  ///   - message: The compressed bytes of one message, as the peer sent them.
  ///   - maximumSize: In bytes. Must not be exceeded, not even in memory: what arrives is not trusted.
  /// - Throws: ``ConnectError`` with `resource_exhausted` if the result would be larger. Any other error if the bytes
  ///   are not exactly one whole compressed message. The call fails with a ``ConnectError`` as it is; any other error
  ///   becomes the cause of an `internal` error.
  func decompress(_ message: ByteBuffer, maximumSize: Int) throws -> ByteBuffer
}

extension CompressionPool {
  /// Whether a header that says `name` (in lower case) means this encoding. `x-gzip` equals `gzip` (RFC 9110, section
  /// 8.4.1.3).
  package func hasName(_ name: String) -> Bool {
    self.name == name || (name == "x-gzip" && self.name == "gzip")
  }
}
