internal import CZlib
internal import NIOCore

/// A context of zlib that decompresses one message after the other.
final class ZlibInflater {
  private static let gzipMagic: UInt8 = 0x1f

  private let name: String
  private let isGzip: Bool
  // zlib's state points back to the stream, which must not move.
  private let stream: UnsafeMutablePointer<z_stream>

  /// - Parameters:
  ///   - name: The encoding's, for errors.
  ///   - windowBits: 15 for the zlib format, 31 for gzip.
  /// - Throws: ``ConnectError`` with `resource_exhausted` if there is no memory for it.
  init(name: String, windowBits: Int32) throws {
    self.name = name
    self.isGzip = windowBits > 15
    self.stream = .allocate(capacity: 1)
    self.stream.initialize(to: z_stream())
    let status = inflateInit2_(self.stream, windowBits, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
    guard status == Z_OK else { throw CompressionErrors.zlib(status) }
  }

  // Also runs when `init` has thrown; zlib then finds no state and does nothing.
  deinit {
    inflateEnd(self.stream)
    self.stream.deallocate()
  }

  /// Writes the decompressed form of `message` to `output`. A gzip file may have several members (RFC 1952, section
  /// 2.2), whose contents follow each other.
  ///
  /// - Throws: ``ConnectError``: `resource_exhausted` at the output's limit, `internal` if the message is not
  ///   valid, not complete, or has something behind it.
  func decompress(_ message: ByteBuffer, to output: inout BoundedOutput) throws {
    try message.withUnsafeReadableBytes { input in
      try self.reset()
      self.stream.setInput(input)
      defer { self.stream.forgetBuffers() }
      while true {
        var status = Z_OK
        var hadRoom = false
        try output.write { space in
          self.stream.write(to: space) {
            status = inflate(self.stream, Z_NO_FLUSH)
            hadRoom = self.stream.pointee.avail_out > 0
          }
        }
        switch status {
        case Z_STREAM_END:
          guard self.stream.pointee.avail_in > 0 else { return }
          guard self.isGzip, self.stream.pointee.next_in?.pointee == Self.gzipMagic else {
            throw CompressionErrors.corrupt(self.name, "there are bytes behind its end")
          }
          try self.reset()
        case Z_OK, Z_BUF_ERROR:
          // zlib stops when it lacks input or room; the next round brings room.
          if hadRoom { throw CompressionErrors.corrupt(self.name, "it is incomplete") }
        case Z_NEED_DICT:
          throw CompressionErrors.corrupt(self.name, "it needs a dictionary")
        case Z_DATA_ERROR:
          let problem = self.stream.pointee.msg.map { String(cString: $0) } ?? "data error"
          throw CompressionErrors.corrupt(self.name, problem)
        default:
          throw CompressionErrors.zlib(status)
        }
      }
    }
  }

  private func reset() throws {
    let status = inflateReset(self.stream)
    guard status == Z_OK else { throw CompressionErrors.zlib(status) }
  }
}
