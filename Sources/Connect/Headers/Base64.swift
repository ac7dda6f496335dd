package import NIOCore

/// Base64 as RPC protocols and JSON use it: padded or not, in the standard alphabet or the URL-safe one.
package enum Base64 {
  /// The bytes that `text` stands for; nil if it is not base64.
  package static func decode(_ text: some StringProtocol) -> ByteBuffer? {
    var text = String(text)
    return text.withUTF8 { self.decode(UnsafeRawBufferPointer($0)) }
  }

  /// The bytes that `characters` stand for; nil if they are not base64.
  package static func decode(_ characters: UnsafeRawBufferPointer) -> ByteBuffer? {
    var bytes = ByteBuffer()
    var isBase64 = false
    bytes.writeWithUnsafeMutableBytes(minimumWritableBytes: characters.count / 4 * 3 + 3) { target in
      guard let count = self.decode(characters, to: target) else { return 0 }
      isBase64 = true
      return count
    }
    return isBase64 ? bytes : nil
  }

  /// Writes the bytes to `target`, which has room for them, and returns how many; nil if `characters` are not base64.
  private static func decode(_ characters: UnsafeRawBufferPointer, to target: UnsafeMutableRawBufferPointer)
    -> Int?
  {
    var written = 0
    var bits: UInt32 = 0
    var bitCount: UInt32 = 0
    var digitCount = 0
    var paddingCount = 0
    for character in characters {
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
        target[written] = UInt8(truncatingIfNeeded: bits >> bitCount)
        written += 1
      }
    }
    return self.isComplete(digitCount, paddingCount) ? written : nil
  }

  /// Whether `text` is base64 in the standard alphabet, padded or not, or a list of such values with commas between them.
  /// An empty value is base64, too.
  static func isList(_ text: String) -> Bool {
    var text = text
    return text.withUTF8 { bytes in
      var start = 0
      while let comma = bytes[start...].firstIndex(of: UInt8(ascii: ",")) {
        guard self.isValue(UnsafeBufferPointer(rebasing: bytes[start..<comma])) else { return false }
        start = comma + 1
      }
      return self.isValue(UnsafeBufferPointer(rebasing: bytes[start...]))
    }
  }

  private static func isValue(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    var (digitCount, paddingCount) = (0, 0)
    for byte in FieldSpace.trim(bytes) {
      switch byte {
      case UInt8(ascii: "="): paddingCount += 1
      // Decoders of servers do not take the alphabet for URLs here.
      case UInt8(ascii: "-"), UInt8(ascii: "_"): return false
      default:
        guard paddingCount == 0, self.digit(byte) != nil else { return false }
        digitCount += 1
      }
    }
    return self.isComplete(digitCount, paddingCount)
  }

  private static func isComplete(_ digitCount: Int, _ paddingCount: Int) -> Bool {
    guard digitCount % 4 != 1, paddingCount <= 2 else { return false }
    return paddingCount == 0 || (digitCount + paddingCount) % 4 == 0
  }

  package enum Alphabet {
    case standard
    case urlSafe
  }

  /// `bytes` in base64.
  package static func encode(_ bytes: ByteBuffer, alphabet: Alphabet, isPadded: Bool) -> ByteBuffer {
    let length = self.encodedLength(bytes.readableBytes)
    var text = ByteBuffer()
    text.reserveCapacity(length)
    bytes.withUnsafeReadableBytes { source in
      _ = text.writeWithUnsafeMutableBytes(minimumWritableBytes: length) { target in
        self.encode(source, to: target, alphabet: alphabet, isPadded: isPadded)
      }
    }
    return text
  }

  /// The number of characters that encode `count` bytes, with padding.
  package static func encodedLength(_ count: Int) -> Int { (count + 2) / 3 * 4 }

  /// The number of bytes that `text`, which is base64 with padding, stands for.
  static func decodedLength(ofPadded text: ByteBuffer) -> Int {
    let padding = text.readableBytesView.suffix(2).count { $0 == UInt8(ascii: "=") }
    return max(text.readableBytes / 4 * 3 - padding, 0)
  }

  /// Writes `source` in base64 to `target`, which has room for it, and returns the number of characters.
  package static func encode(
    _ source: UnsafeRawBufferPointer,
    to target: UnsafeMutableRawBufferPointer,
    alphabet: Alphabet,
    isPadded: Bool
  ) -> Int {
    self.characters(of: alphabet).withUTF8Buffer { characters in
      var written = 0
      var index = 0
      while index < source.count {
        let count = min(3, source.count - index)
        var bits = UInt32(source[index]) << 16
        if count > 1 { bits |= UInt32(source[index + 1]) << 8 }
        if count > 2 { bits |= UInt32(source[index + 2]) }
        for digit in 0...count {
          target[written] = characters[Int(bits >> (18 - 6 * UInt32(digit)) & 63)]
          written += 1
        }
        if isPadded {
          for _ in count..<3 {
            target[written] = UInt8(ascii: "=")
            written += 1
          }
        }
        index += 3
      }
      return written
    }
  }

  private static func characters(of alphabet: Alphabet) -> StaticString {
    switch alphabet {
    case .standard: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    case .urlSafe: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    }
  }

  /// The six bits that `character` stands for, in either alphabet.
  static func digit(_ character: UInt8) -> UInt32? {
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
