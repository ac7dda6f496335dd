#if Zstd
internal import CZstd
public import NIOCore

/// `zstd`, RFC 8878, on libzstd. Comes with the package trait `Zstd`.
public struct ZstdCompressionPool: CompressionPool {
  public let name = "zstd"
  private let compressors: ContextPool<ZstdCompressor>
  private let decompressors: ContextPool<ZstdDecompressor>

  /// - Parameter level: 1 (fastest) to 19 (smallest).
  public init(level: Int = 3) {
    let level = Int32(min(max(level, 1), 19))
    self.compressors = ContextPool { try ZstdCompressor(level: level) }
    self.decompressors = ContextPool { try ZstdDecompressor() }
  }

  public func compress(_ message: ByteBuffer) throws -> ByteBuffer {
    try self.compressors.withContext { try $0.compress(message) }
  }

  public func decompress(_ message: ByteBuffer, maximumSize: Int) throws -> ByteBuffer {
    try self.decompressors.withContext { decompressor in
      var output = BoundedOutput(
        limit: maximumSize,
        expected: message.readableBytes.multipliedClamping(by: 4)
      )
      try decompressor.decompress(message, to: &output)
      return output.bytes
    }
  }
}

private final class ZstdCompressor {
  private let context: OpaquePointer
  private let level: Int32

  init(level: Int32) throws {
    guard let context = ZSTD_createCCtx() else { throw CompressionErrors.noMemory("for zstd") }
    self.context = context
    self.level = level
  }

  deinit {
    ZSTD_freeCCtx(self.context)
  }

  func compress(_ message: ByteBuffer) throws -> ByteBuffer {
    let bound = ZSTD_compressBound(message.readableBytes)
    var output = ByteBuffer(withHeadroomFor: bound)
    let size = message.withUnsafeReadableBytes { input in
      output.withUnsafeMutableWritableBytes { space in
        ZSTD_compressCCtx(
          self.context,
          space.baseAddress,
          space.count,
          input.baseAddress,
          input.count,
          self.level
        )
      }
    }
    guard ZSTD_isError(size) == 0 else {
      throw ConnectError(
        code: .internalError,
        message: "zstd failed: \(String(cString: ZSTD_getErrorName(size)))"
      )
    }
    output.moveWriterIndex(forwardBy: size)
    return output
  }
}

private final class ZstdDecompressor {
  /// 8 MiB, the largest window that HTTP allows (RFC 9659); a frame could ask for far more memory.
  private static let maximumWindowLog: Int32 = 23

  private let context: OpaquePointer

  init() throws {
    guard let context = ZSTD_createDCtx() else { throw CompressionErrors.noMemory("for zstd") }
    self.context = context
    ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, Self.maximumWindowLog)
  }

  deinit {
    ZSTD_freeDCtx(self.context)
  }

  /// Writes the decompressed form of `message`, which has one frame or several (RFC 8878, section 3.1).
  func decompress(_ message: ByteBuffer, to output: inout BoundedOutput) throws {
    ZSTD_DCtx_reset(self.context, ZSTD_reset_session_only)
    try message.withUnsafeReadableBytes { bytes in
      var input = ZSTD_inBuffer(src: bytes.baseAddress, size: bytes.count, pos: 0)
      while true {
        var status = 0
        var hadRoom = false
        try output.write { space in
          var target = ZSTD_outBuffer(dst: space.baseAddress, size: space.count, pos: 0)
          status = ZSTD_decompressStream(self.context, &target, &input)
          hadRoom = target.pos < target.size
          return target.pos
        }
        guard ZSTD_isError(status) == 0 else {
          throw CompressionErrors.corrupt("zstd", String(cString: ZSTD_getErrorName(status)))
        }
        // 0 is the end of a frame; any other status means that more follows.
        if status == 0, input.pos == input.size { return }
        if status != 0, hadRoom, input.pos == input.size {
          throw CompressionErrors.corrupt("zstd", "it is incomplete")
        }
      }
    }
  }
}
#endif
