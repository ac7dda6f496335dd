internal import NIOCore

/// Base64 as RPC protocols use it: padded or not, in the standard alphabet or the URL-safe one.
enum Base64 {
  /// The bytes that `text` stands for; nil if it is not base64.
  static func decode(_ text: some StringProtocol) -> ByteBuffer? {
    var bytes = ByteBuffer()
    bytes.reserveCapacity(text.utf8.count / 4 * 3 + 3)
    var bits: UInt32 = 0
    var bitCount = 0
    var digitCount = 0
    var paddingCount = 0
    for character in text.utf8 {
      if character == UInt8(ascii: "=") {
        paddingCount += 1
        continue
      }
      guard paddingCount == 0, let digit = self.digit(character) else { return nil }
      digitCount += 1
      bits = (bits << 6 | digit) & 0xffff
      bitCount += 6
      if bitCount >= 8 {
        bitCount -= 8
        bytes.writeInteger(UInt8(truncatingIfNeeded: bits >> UInt32(bitCount)))
      }
    }
    guard digitCount % 4 != 1, paddingCount <= 2 else { return nil }
    guard paddingCount == 0 || (digitCount + paddingCount) % 4 == 0 else { return nil }
    return bytes
  }

  private static func digit(_ character: UInt8) -> UInt32? {
    switch character {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character - UInt8(ascii: "A"))
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(character - UInt8(ascii: "a")) + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(character - UInt8(ascii: "0")) + 52
    case UInt8(ascii: "+"), UInt8(ascii: "-"): 62
    case UInt8(ascii: "/"), UInt8(ascii: "_"): 63
    default: nil
    }
  }
}
