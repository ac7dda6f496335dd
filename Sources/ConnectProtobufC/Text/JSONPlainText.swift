/// The part of a JSON string that needs no escapes (RFC 8259, section 7).
enum JSONPlainText {
  /// The number of bytes in front of the first quote, backslash or control character. Looks at eight bytes at a time.
  ///
  /// - Parameter escapingDelete: Whether DEL, which needs no escape, ends the text as well.
  @inline(__always)
  static func count(in bytes: UnsafeRawBufferPointer, escapingDelete: Bool) -> Int {
    let ones: UInt64 = 0x0101_0101_0101_0101
    var index = 0
    while bytes.count - index >= 8 {
      let word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
      // Sets the high bit of the first matching byte, and of no byte before it. Bits of later bytes may be wrong.
      var found = (word &- 0x20 &* ones) & ~word
      found |= self.zeros(word ^ 0x22 &* ones) | self.zeros(word ^ 0x5c &* ones)
      if escapingDelete { found |= self.zeros(word ^ 0x7f &* ones) }
      found &= 0x80 &* ones
      guard found == 0 else { return index + found.trailingZeroBitCount / 8 }
      index += 8
    }
    while index < bytes.count {
      let byte = bytes[index]
      if byte < 0x20 || byte == 0x22 || byte == 0x5c || (escapingDelete && byte == 0x7f) { break }
      index += 1
    }
    return index
  }

  /// Sets the high bit of the lowest byte that is zero.
  @inline(__always)
  private static func zeros(_ word: UInt64) -> UInt64 {
    (word &- 0x0101_0101_0101_0101) & ~word
  }
}
