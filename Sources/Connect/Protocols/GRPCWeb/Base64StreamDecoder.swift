package import NIOCore

/// Decodes base64 that arrives in pieces. Padding may occur in mid-stream, where a server has encoded parts of the
/// body each on its own, and may be missing at the end.
package struct Base64StreamDecoder: Sendable {
  /// The digits of the group of four that is not yet complete.
  private var bits: UInt32 = 0
  private var digitCount = 0
  private var paddingCount = 0
  /// Whether all was base64 so far. What follows something else is not decoded.
  package private(set) var isValid = true

  package init() {}

  /// The bytes that `text` completes, as far as it is base64.
  package mutating func decode(_ text: ByteBuffer) -> ByteBuffer {
    guard self.isValid else { return ByteBuffer() }
    var bytes = ByteBuffer()
    bytes.reserveCapacity((text.readableBytes + 3) / 4 * 3)
    var isValid = self.isValid
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
    self.isValid = isValid
    return bytes
  }

  /// The bytes of a last group without padding; to be called at the end of the text, which is not valid if it breaks
  /// off within a byte.
  package mutating func finish() -> ByteBuffer {
    guard self.isValid, self.digitCount > 0 else { return ByteBuffer() }
    guard self.paddingCount == 0, self.digitCount >= 2 else {
      self.isValid = false
      return ByteBuffer()
    }
    return self.decode(ByteBuffer(repeating: UInt8(ascii: "="), count: 4 - self.digitCount))
  }
}
