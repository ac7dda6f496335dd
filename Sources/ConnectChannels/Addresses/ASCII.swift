internal import Connect

/// Rules for bytes of ASCII text, independent of locale and Unicode.
enum ASCII {
  /// The value of decimal digits; nil without digits, with other bytes, or above `maximum`.
  static func decimal(_ bytes: some Collection<UInt8>, maximum: Int) -> Int? {
    guard !bytes.isEmpty else { return nil }
    var value = 0
    for byte in bytes {
      guard let digit = self.digit(byte) else { return nil }
      let (product, overflow) = value.multipliedReportingOverflow(by: 10)
      guard !overflow, product <= maximum - digit else { return nil }
      value = product + digit
    }
    return value
  }

  static func digit(_ byte: UInt8) -> Int? {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) ? Int(byte - UInt8(ascii: "0")) : nil
  }

  /// Whether the text has the byte. Looks at eight bytes at a time, for text that each call has.
  static func contains(_ byte: UInt8, in text: String) -> Bool {
    let isFound = text.utf8.withContiguousStorageIfAvailable { bytes in
      let raw = UnsafeRawBufferPointer(bytes)
      let ones: UInt64 = 0x0101_0101_0101_0101
      let wanted = ones &* UInt64(byte)
      var index = 0
      while index + 8 <= raw.count {
        let word = raw.loadUnaligned(fromByteOffset: index, as: UInt64.self) ^ wanted
        // Not zero if a byte of the word is.
        if (word &- ones) & ~word & (ones &* 0x80) != 0 { return true }
        index += 8
      }
      return raw[index...].contains(byte)
    }
    return isFound ?? text.utf8.contains(byte)
  }

  /// The target of a request without the query that a GET has.
  static func withoutQuery(_ target: String) -> String {
    // The search in a string takes many steps for each byte. Few targets have a query.
    guard self.contains(UInt8(ascii: "?"), in: target),
      let query = target.utf8.firstIndex(of: UInt8(ascii: "?"))
    else { return target }
    return String(target[..<query])
  }

  static func lowercased(_ byte: UInt8) -> UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
  }

  /// Whether the byte separates words: space, tab and the ends of lines.
  static func isSpace(_ byte: UInt8) -> Bool {
    byte == 0x20 || (0x09...0x0d).contains(byte)
  }

  /// The words between white space.
  static func words(_ text: some StringProtocol) -> [String] {
    Array(text.utf8).split(whereSeparator: self.isSpace).map { String(decoding: $0, as: UTF8.self) }
  }

  /// The lines of a file, without comments that begin with one of these characters.
  static func lines(_ text: String, comments: [UInt8]) -> [String] {
    Array(text.utf8).split(whereSeparator: { $0 == 0x0a || $0 == 0x0d }).map { line in
      String(decoding: line.prefix { !comments.contains($0) }, as: UTF8.self)
    }
  }

  /// Text without white space at both ends.
  static func trimmed(_ text: some StringProtocol) -> String {
    let bytes = Array(text.utf8)
    guard let first = bytes.firstIndex(where: { !self.isSpace($0) }),
      let last = bytes.lastIndex(where: { !self.isSpace($0) })
    else { return "" }
    return String(decoding: bytes[first...last], as: UTF8.self)
  }

  /// Replaces each `%` with two hexadecimal digits by their byte (RFC 3986, section 2.1).
  ///
  /// - Returns: Nil for an incomplete escape, and if the result is not UTF-8.
  static func percentDecoded(_ text: some StringProtocol) -> String? {
    var bytes: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard let high = rest.popFirst().flatMap(PercentEncoding.value),
        let low = rest.popFirst().flatMap(PercentEncoding.value)
      else { return nil }
      bytes.append(high << 4 | low)
    }
    return String(validating: bytes, as: UTF8.self)
  }
}
