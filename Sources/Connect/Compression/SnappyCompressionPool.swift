#if Snappy
internal import CSnappy
public import NIOCore

/// `snappy` in its framing format, on libsnappy, which codes the blocks; frames and checksums are ours. Comes
/// with the package trait `Snappy`.
///
/// <https://github.com/google/snappy/blob/main/framing_format.txt>
public struct SnappyCompressionPool: CompressionPool {
  public let name = "snappy"

  public init() {}

  public func compress(_ message: ByteBuffer) throws -> ByteBuffer {
    var message = message
    let chunkCount = message.readableBytes / SnappyFrame.maximumChunkSize + 1
    let overhead = SnappyFrame.streamIdentifier.count + chunkCount * 8
    var output = ByteBuffer(withHeadroomFor: snappy_max_compressed_length(message.readableBytes) + overhead)
    output.writeBytes(SnappyFrame.streamIdentifier)
    while message.readableBytes > 0 {
      let count = min(message.readableBytes, SnappyFrame.maximumChunkSize)
      guard let chunk = message.readSlice(length: count) else { break }
      self.write(chunk, to: &output)
    }
    return output
  }

  /// Writes a chunk: its type, its length in three bytes, the checksum, and the data, compressed if that is
  /// smaller.
  private func write(_ chunk: ByteBuffer, to output: inout ByteBuffer) {
    let start = output.writerIndex
    var size = snappy_max_compressed_length(chunk.readableBytes)
    let checksum = chunk.withUnsafeReadableBytes { SnappyFrame.checksum(of: $0) }
    output.writeRepeatingByte(0, count: 4)
    output.writeInteger(checksum, endianness: .little)
    output.writeWithUnsafeMutableBytes(minimumWritableBytes: size) { space in
      let status = chunk.withUnsafeReadableBytes { input in
        snappy_compress(
          input.baseAddress?.assumingMemoryBound(to: CChar.self),
          input.count,
          space.baseAddress?.assumingMemoryBound(to: CChar.self),
          &size
        )
      }
      if status != SNAPPY_OK { size = chunk.readableBytes }
      return status == SNAPPY_OK ? size : 0
    }
    var type = SnappyFrame.compressedChunk
    if size >= chunk.readableBytes {
      type = SnappyFrame.uncompressedChunk
      size = chunk.readableBytes
      output.moveWriterIndex(to: start + 8)
      output.writeImmutableBuffer(chunk)
    }
    output.setInteger(UInt32(size + 4) << 8 | UInt32(type), at: start, endianness: .little)
  }

  public func decompress(_ message: ByteBuffer, maximumSize: Int) throws -> ByteBuffer {
    var message = message
    var output = BoundedOutput(limit: maximumSize, expected: message.readableBytes.multipliedClamping(by: 2))
    guard let start = message.readBytes(length: SnappyFrame.streamIdentifier.count),
      start == SnappyFrame.streamIdentifier
    else {
      throw CompressionErrors.corrupt(self.name, "it does not begin with the stream identifier")
    }
    while message.readableBytes > 0 {
      guard let header = message.readInteger(endianness: .little, as: UInt32.self),
        var chunk = message.readSlice(length: Int(header >> 8))
      else { throw CompressionErrors.corrupt(self.name, "it is incomplete") }
      switch UInt8(truncatingIfNeeded: header) {
      case SnappyFrame.compressedChunk:
        try self.decompress(&chunk, isCompressed: true, to: &output)
      case SnappyFrame.uncompressedChunk:
        try self.decompress(&chunk, isCompressed: false, to: &output)
      case 0x80...0xfe:
        break  // May be skipped.
      case 0xff where Array(chunk.readableBytesView) == Array(SnappyFrame.streamIdentifier.dropFirst(4)):
        break
      case let type:
        throw CompressionErrors.corrupt(self.name, "unknown chunk type \(type)")
      }
    }
    return output.bytes
  }

  private func decompress(
    _ chunk: inout ByteBuffer,
    isCompressed: Bool,
    to output: inout BoundedOutput
  ) throws {
    guard let checksum = chunk.readInteger(endianness: .little, as: UInt32.self) else {
      throw CompressionErrors.corrupt(self.name, "a chunk has no checksum")
    }
    try chunk.withUnsafeReadableBytes { input in
      let text = input.baseAddress?.assumingMemoryBound(to: CChar.self)
      var size = input.count
      if isCompressed, snappy_uncompressed_length(text, input.count, &size) != SNAPPY_OK {
        throw CompressionErrors.corrupt(self.name, "a chunk has no length")
      }
      guard size <= SnappyFrame.maximumChunkSize else {
        throw CompressionErrors.corrupt(self.name, "a chunk is larger than 64 KiB")
      }
      var isValid = true
      try output.write(exactly: size) { space in
        if isCompressed {
          var count = size
          let target = space.baseAddress?.assumingMemoryBound(to: CChar.self)
          isValid = snappy_uncompress(text, input.count, target, &count) == SNAPPY_OK && count == size
        } else {
          space.copyMemory(from: input)
        }
        isValid = isValid && SnappyFrame.checksum(of: UnsafeRawBufferPointer(space)) == checksum
      }
      guard isValid else { throw CompressionErrors.corrupt(self.name, "a chunk does not match its checksum") }
    }
  }
}
#endif
