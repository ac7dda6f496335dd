/// An escape in a JSON string (RFC 8259, section 7).
package enum JSONEscape {
  /// What is wrong, and how many bytes behind the backslash.
  package struct Failure: Swift.Error {
    package let problem: String
    package let offset: Int
  }

  /// Reads an escape.
  ///
  /// - Parameter text: What follows the backslash.
  /// - Returns: The character, and how many bytes behind the backslash stand for it.
  package static func scalar(
    atStartOf text: UnsafeBufferPointer<UInt8>
  ) throws(Failure) -> (scalar: Unicode.Scalar, length: Int) {
    guard let byte = text.first else { throw Failure(problem: "an escape is incomplete", offset: 0) }
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return (Unicode.Scalar(byte), 1)
    case UInt8(ascii: "b"): return ("\u{8}", 1)
    case UInt8(ascii: "f"): return ("\u{c}", 1)
    case UInt8(ascii: "n"): return ("\n", 1)
    case UInt8(ascii: "r"): return ("\r", 1)
    case UInt8(ascii: "t"): return ("\t", 1)
    case UInt8(ascii: "u"): break
    default: throw Failure(problem: "an escape is unknown", offset: 1)
    }
    let unit = try self.codeUnit(text, at: 1)
    if let scalar = Unicode.Scalar(unit) { return (scalar, 5) }
    guard (0xd800..<0xdc00).contains(unit), text[5...].starts(with: "\\u".utf8) else {
      throw Failure(problem: "an escape has one half of a surrogate pair", offset: 5)
    }
    let low = try self.codeUnit(text, at: 7)
    guard (0xdc00..<0xe000).contains(low),
      let scalar = Unicode.Scalar(0x10000 + (unit - 0xd800) << 10 + (low - 0xdc00))
    else { throw Failure(problem: "an escape has one half of a surrogate pair", offset: 11) }
    return (scalar, 11)
  }

  private static func codeUnit(_ text: UnsafeBufferPointer<UInt8>, at start: Int) throws(Failure) -> UInt32 {
    var value: UInt32 = 0
    for index in start..<start + 4 {
      guard index < text.count, let digit = PercentEncoding.value(text[index]) else {
        throw Failure(problem: "an escape needs four hexadecimal digits", offset: index)
      }
      value = value << 4 | UInt32(digit)
    }
    return value
  }
}
