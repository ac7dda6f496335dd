internal import NIOCore

/// Both directions of one of zlib's formats, with contexts that are kept between messages.
final class ZlibCodec: Sendable {
  private let deflaters: ContextPool<ZlibDeflater>
  private let inflaters: ContextPool<ZlibInflater>

  /// - Parameters:
  ///   - name: The encoding's, for errors.
  ///   - level: 0 to 9; others count as the nearest.
  ///   - windowBits: 15 for the zlib format, 31 for gzip.
  init(name: String, level: Int, windowBits: Int32) {
    let level = min(max(level, 0), 9)
    self.deflaters = ContextPool { try ZlibDeflater(level: level, windowBits: windowBits) }
    self.inflaters = ContextPool { try ZlibInflater(name: name, windowBits: windowBits) }
  }

  func compress(_ message: ByteBuffer) throws -> ByteBuffer {
    try self.deflaters.withContext { try $0.compress(message) }
  }

  func decompress(_ message: ByteBuffer, maximumSize: Int) throws -> ByteBuffer {
    try self.inflaters.withContext { inflater in
      var output = BoundedOutput(
        limit: maximumSize,
        expected: message.readableBytes.multipliedClamping(by: 4)
      )
      try inflater.decompress(message, to: &output)
      return output.bytes
    }
  }
}

extension Int {
  func multipliedClamping(by factor: Int) -> Int {
    let (product, overflow) = self.multipliedReportingOverflow(by: factor)
    return overflow ? Int.max : product
  }
}
