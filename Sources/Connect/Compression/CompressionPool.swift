public import NIOCore

/// A way to compress messages: its name on the wire, and both directions.
///
/// It is called for one message at a time, each of which stands alone, and from any thread. The name "pool" is
/// that of the Connect ecosystem: an implementation keeps its contexts between messages, since setting one up
/// costs more than a small message does.
///
/// ``GzipCompressionPool`` and ``DeflateCompressionPool`` are always there; with the package traits `Brotli`,
/// `Zstd` and `Snappy` come those of these names. One's own works like any of them.
public protocol CompressionPool: Sendable {
  /// The encoding's name in headers, in lower case: `gzip`.
  var name: String { get }

  /// The compressed form of `message`, which may be empty.
  ///
  /// - Throws: Any error; the call fails with `internal` and this error as its cause, or with a
  ///   ``ConnectError`` as it is.
  func compress(_ message: ByteBuffer) throws -> ByteBuffer

  /// What `message`, which is not empty, is the compressed form of.
  ///
  /// - Parameter maximumSize: In bytes. Must not be exceeded, not even in memory: what arrives is not trusted.
  /// - Throws: ``ConnectError`` with `resource_exhausted` if the result would be larger; any other error for
  ///   bytes that are no (whole) compressed message or that have something behind it: the call fails with
  ///   `internal` and this error as its cause, or with a ``ConnectError`` as it is.
  func decompress(_ message: ByteBuffer, maximumSize: Int) throws -> ByteBuffer
}
