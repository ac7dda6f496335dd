#if Brotli
internal import CBrotli
public import NIOCore

/// `br`, RFC 7932, on libbrotli. Comes with the package trait `Brotli`.
///
/// libbrotli cannot use a context twice, so that each message has a new one.
public struct BrotliCompressionPool: CompressionPool {
  public let name = "br"
  private let quality: Int32

  /// - Parameter quality: 0 (fastest) to 11 (smallest, and very slow).
  public init(quality: Int = 4) {
    self.quality = Int32(min(max(quality, 0), 11))
  }

  public func compress(_ message: ByteBuffer) throws -> ByteBuffer {
    let bound = max(BrotliEncoderMaxCompressedSize(message.readableBytes), 64)
    var output = ByteBuffer(withHeadroomFor: bound)
    var size = bound
    let isDone = message.withUnsafeReadableBytes { input in
      output.withUnsafeMutableWritableBytes { space in
        BrotliEncoderCompress(
          self.quality,
          BROTLI_DEFAULT_WINDOW,
          BROTLI_MODE_GENERIC,
          input.count,
          input.baseAddress?.assumingMemoryBound(to: UInt8.self),
          &size,
          space.baseAddress?.assumingMemoryBound(to: UInt8.self)
        )
      }
    }
    guard isDone != 0 else {
      throw ConnectError(
        code: .internalError,
        message: "libbrotli could not compress a message of \(message.readableBytes) bytes to send; "
          + "send it with another compression, or with none"
      )
    }
    output.moveWriterIndex(forwardBy: size)
    return output
  }

  public func decompress(_ message: ByteBuffer, maximumSize: Int) throws -> ByteBuffer {
    guard let decoder = BrotliDecoderCreateInstance(nil, nil, nil) else {
      throw CompressionErrors.noMemory("to decompress brotli")
    }
    defer { BrotliDecoderDestroyInstance(decoder) }
    var output = BoundedOutput(limit: maximumSize, expected: message.readableBytes.multipliedClamping(by: 4))
    try message.withUnsafeReadableBytes { input in
      var nextInput = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
      var inputCount = input.count
      while true {
        var result = BROTLI_DECODER_RESULT_ERROR
        try output.write { space in
          var nextOutput = space.baseAddress?.assumingMemoryBound(to: UInt8.self)
          var outputCount = space.count
          result = BrotliDecoderDecompressStream(
            decoder,
            &inputCount,
            &nextInput,
            &outputCount,
            &nextOutput,
            nil
          )
          return space.count - outputCount
        }
        switch result {
        case BROTLI_DECODER_RESULT_SUCCESS:
          guard inputCount == 0 else {
            throw CompressionErrors.corrupt(self.name, "there are bytes behind its end")
          }
          return
        case BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT:
          continue
        case BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT:
          throw CompressionErrors.corrupt(self.name, "it is incomplete")
        default:
          let problem = BrotliDecoderErrorString(BrotliDecoderGetErrorCode(decoder))
          throw CompressionErrors.corrupt(self.name, problem.map { String(cString: $0) } ?? "data error")
        }
      }
    }
    return output.bytes
  }
}
#endif
