internal import NIOCore

/// Decodes base64 that arrives in pieces. Padding may occur in mid-stream, where a server has encoded parts of the
/// body each on its own, and may be missing at the end.
struct Base64StreamDecoder {
  /// The digits of the group of four that is not yet complete.
  private var bits: UInt32 = 0
  private var digitCount = 0
  private var paddingCount = 0

  /// The bytes that `text` completes.
  ///
  /// - Throws: ``ConnectError`` with `internal` if it is not base64.
  mutating func decode(_ text: ByteBuffer) throws(ConnectError) -> ByteBuffer {
    var bytes = ByteBuffer()
    bytes.reserveCapacity((text.readableBytes + 3) / 4 * 3)
    var isValid = true
    var bits = self.bits
    var digitCount = self.digitCount
    var paddingCount = self.paddingCount
    text.withUnsafeReadableBytes { source in
      _ = bytes.writeWithUnsafeMutableBytes(minimumWritableBytes: (source.count + 3) / 4 * 3) { target in
        var written = 0
        for character in source {
          if paddingCount == 0, let digit = Base64.digit(character) {
            bits = bits << 6 | digit
            digitCount += 1
            guard digitCount == 4 else { continue }
          } else if character == UInt8(ascii: "="), digitCount >= 2 {
            paddingCount += 1
            guard digitCount + paddingCount == 4 else { continue }
            bits <<= 6 * UInt32(paddingCount)
          } else {
            isValid = false
            return written
          }
          for index in 0..<(3 - paddingCount) {
            target[written] = UInt8(truncatingIfNeeded: bits >> (16 - 8 * UInt32(index)))
            written += 1
          }
          bits = 0
          digitCount = 0
          paddingCount = 0
        }
        return written
      }
    }
    self.bits = bits
    self.digitCount = digitCount
    self.paddingCount = paddingCount
    guard isValid else { throw Self.error }
    return bytes
  }

  /// The bytes of a last group without padding; to be called at the end of the text.
  ///
  /// - Throws: ``ConnectError`` with `internal` if the text breaks off within a byte.
  mutating func finish() throws(ConnectError) -> ByteBuffer {
    guard self.digitCount > 0 else { return ByteBuffer() }
    guard self.paddingCount == 0, self.digitCount >= 2 else { throw Self.error }
    return try self.decode(ByteBuffer(repeating: UInt8(ascii: "="), count: 4 - self.digitCount))
  }

  private static var error: ConnectError {
    ConnectError(code: .internalError, message: "received body is no valid base64")
  }
}
