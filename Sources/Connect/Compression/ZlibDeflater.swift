internal import CZlib
internal import NIOCore

/// A context of zlib that compresses one message after the other.
final class ZlibDeflater {
  // zlib's state points back to the stream, which must not move.
  private let stream: UnsafeMutablePointer<z_stream>

  /// - Parameters:
  ///   - level: 0 to 9.
  ///   - windowBits: 15 for the zlib format, 31 for gzip.
  /// - Throws: ``ConnectError`` with `resource_exhausted` if there is no memory for it.
  init(level: Int, windowBits: Int32) throws {
    self.stream = .allocate(capacity: 1)
    self.stream.initialize(to: z_stream())
    let status = deflateInit2_(
      self.stream,
      Int32(level),
      Z_DEFLATED,
      windowBits,
      8,
      Z_DEFAULT_STRATEGY,
      ZLIB_VERSION,
      Int32(MemoryLayout<z_stream>.size)
    )
    guard status == Z_OK else { throw CompressionErrors.zlib(status) }
  }

  // Also runs when `init` has thrown; zlib then finds no state and does nothing.
  deinit {
    deflateEnd(self.stream)
    self.stream.deallocate()
  }

  /// The compressed form of `message`, with room for an envelope's prefix in front.
  func compress(_ message: ByteBuffer) throws -> ByteBuffer {
    let status = deflateReset(self.stream)
    guard status == Z_OK else { throw CompressionErrors.zlib(status) }
    let bound = Int(deflateBound(self.stream, UInt(message.readableBytes)))
    var output = ByteBuffer(withHeadroomFor: bound)
    try message.withUnsafeReadableBytes { input in
      self.stream.setInput(input)
      defer { self.stream.forgetBuffers() }
      var status = Z_OK
      while status != Z_STREAM_END {
        output.writeWithUnsafeMutableBytes(minimumWritableBytes: 64) { space in
          self.stream.write(to: space) { status = deflate(self.stream, Z_FINISH) }
        }
        guard status == Z_STREAM_END || status == Z_OK || status == Z_BUF_ERROR else {
          throw CompressionErrors.zlib(status)
        }
      }
    }
    return output
  }
}

extension UnsafeMutablePointer<z_stream> {
  func setInput(_ input: UnsafeRawBufferPointer) {
    self.pointee.next_in = UnsafeMutablePointer<UInt8>(
      mutating: input.baseAddress?.assumingMemoryBound(to: UInt8.self)
    )
    self.pointee.avail_in = UInt32(clamping: input.count)
  }

  /// Gives `space` to zlib as its output while `body` runs, and returns how much of it was used.
  func write(to space: UnsafeMutableRawBufferPointer, _ body: () -> Void) -> Int {
    let count = UInt32(clamping: space.count)
    self.pointee.next_out = space.baseAddress?.assumingMemoryBound(to: UInt8.self)
    self.pointee.avail_out = count
    body()
    return Int(count - self.pointee.avail_out)
  }

  func forgetBuffers() {
    self.pointee.next_in = nil
    self.pointee.avail_in = 0
    self.pointee.next_out = nil
    self.pointee.avail_out = 0
  }
}
