internal import Connect

/// Reads JSON text (RFC 8259) piece by piece.
///
/// Invariant: `at` is never before `start` or past `end`, and nothing at or past `end` is read. The caller keeps the
/// text as long as this value and all returned buffers. The bytes that ``withString(_:)`` passes to its closure are
/// valid until the closure returns.
struct JSONReader {
  private let start: UnsafePointer<UInt8>
  private let end: UnsafePointer<UInt8>
  private var at: UnsafePointer<UInt8>
  /// The content of the last string that had escapes.
  private var unescaped: [UInt8] = []
  private let maximumDepth: Int

  /// - Parameter text: The caller keeps the text as long as the reader and all returned buffers.
  init(_ text: UnsafeRawBufferPointer, maximumDepth: Int) throws(ConnectError) {
    guard let start = text.baseAddress?.assumingMemoryBound(to: UInt8.self), text.count > 0 else {
      throw .undecodable("JSON: no text")
    }
    self.start = start
    self.end = start + text.count
    self.at = start
    self.maximumDepth = maximumDepth
  }

  func failure(_ message: String) -> ConnectError {
    .undecodable("JSON, byte \(self.at - self.start): \(message)")
  }

  // MARK: Structure

  private mutating func skipWhitespace() {
    while self.at < self.end,
      self.at[0] == 0x20 || self.at[0] == 0x0a || self.at[0] == 0x0d || self.at[0] == 0x09
    {
      self.at += 1
    }
  }

  /// The first byte of the next token; 0 at the end.
  mutating func peek() -> UInt8 {
    self.skipWhitespace()
    return self.at < self.end ? self.at[0] : 0
  }

  /// Consumes the character if it comes next.
  mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard self.peek() == UInt8(ascii: character) else { return false }
    self.at += 1
    return true
  }

  mutating func expect(_ character: Unicode.Scalar) throws(ConnectError) {
    guard self.take(character) else { throw self.failure("'\(character)' expected") }
  }

  mutating func expectEnd() throws(ConnectError) {
    guard self.peek() == 0, self.at == self.end else { throw self.failure("more text than one value") }
  }

  /// Consumes a word if it comes next: `null`, `true` or `false`.
  mutating func takeWord(_ word: StaticString) -> Bool {
    self.skipWhitespace()
    let count = word.utf8CodeUnitCount
    guard self.end - self.at >= count else { return false }
    for index in 0..<count where self.at[index] != word.utf8Start[index] { return false }
    self.at += count
    return true
  }

  // MARK: Strings

  /// Calls `body` with the bytes of a string, which are valid UTF-8.
  mutating func withString<Result>(
    _ body: (UnsafeRawBufferPointer) throws(ConnectError) -> Result
  ) throws(ConnectError) -> Result {
    try self.expect("\"")
    let first = self.at
    let rest = UnsafeRawBufferPointer(start: first, count: self.end - first)
    self.at += JSONPlainText.count(in: rest, escapingDelete: false)
    guard self.at < self.end else { throw self.failure("a string without its end") }
    guard self.at[0] >= 0x20 else { throw self.failure("a control character in a string") }
    let text = UnsafeRawBufferPointer(start: first, count: self.at - first)
    if case .invalid = UTF8Check(text) { throw self.failure("invalid UTF-8") }
    if self.at[0] == UInt8(ascii: "\"") {
      self.at += 1
      return try body(text)
    }
    try self.unescape(from: first)
    var bytes: [UInt8] = []
    swap(&bytes, &self.unescaped)
    defer { swap(&bytes, &self.unescaped) }
    do {
      return try bytes.withUnsafeBytes { try body($0) }
    } catch {
      throw error as? ConnectError ?? self.failure("\(error)")
    }
  }

  mutating func string() throws(ConnectError) -> String {
    try self.withString { bytes throws(ConnectError) in String(decoding: bytes, as: UTF8.self) }
  }

  private mutating func unescape(from first: UnsafePointer<UInt8>) throws(ConnectError) {
    self.unescaped.removeAll(keepingCapacity: true)
    self.unescaped.append(contentsOf: UnsafeBufferPointer(start: first, count: self.at - first))
    while true {
      guard self.at < self.end else { throw self.failure("a string without its end") }
      let byte = self.at[0]
      self.at += 1
      if byte == UInt8(ascii: "\"") { break }
      guard byte >= 0x20 else { throw self.failure("a control character in a string") }
      if byte == UInt8(ascii: "\\") {
        try self.escape()
      } else {
        self.unescaped.append(byte)
      }
    }
    let isValid = self.unescaped.withUnsafeBytes { bytes in
      if case .invalid = UTF8Check(bytes) { return false }
      return true
    }
    guard isValid else { throw self.failure("invalid UTF-8") }
  }

  private mutating func escape() throws(ConnectError) {
    let rest = UnsafeBufferPointer(start: self.at, count: self.end - self.at)
    do throws(JSONEscape.Failure) {
      let (scalar, length) = try JSONEscape.scalar(atStartOf: rest)
      self.at += length
      self.unescaped.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
    } catch {
      self.at += error.offset
      throw self.failure(error.problem)
    }
  }

  // MARK: Numbers

  /// The text of a number.
  mutating func number() throws(ConnectError) -> UnsafeRawBufferPointer {
    self.skipWhitespace()
    let rest = UnsafeRawBufferPointer(start: self.at, count: self.end - self.at)
    guard let length = JSONNumber.length(atStartOf: rest) else { throw self.failure("a value expected") }
    self.at += length
    return UnsafeRawBufferPointer(rebasing: rest[..<length])
  }

  // MARK: Values to pass over

  mutating func skipValue(depth: Int = 0) throws(ConnectError) {
    guard depth <= self.maximumDepth else {
      throw .undecodable("JSON: more than \(self.maximumDepth) nested values", code: .resourceExhausted)
    }
    switch self.peek() {
    case UInt8(ascii: "{"):
      try self.expect("{")
      if self.take("}") { return }
      repeat {
        try self.withString { _ throws(ConnectError) in }
        try self.expect(":")
        try self.skipValue(depth: depth + 1)
      } while self.take(",")
      try self.expect("}")
    case UInt8(ascii: "["):
      try self.expect("[")
      if self.take("]") { return }
      repeat { try self.skipValue(depth: depth + 1) } while self.take(",")
      try self.expect("]")
    case UInt8(ascii: "\""):
      try self.withString { _ throws(ConnectError) in }
    default:
      if self.takeWord("null") || self.takeWord("true") || self.takeWord("false") { return }
      _ = try self.number()
    }
  }
}

/// Numbers in JSON's syntax.
enum JSONNumber {
  /// The length of the number at the start of `text`; nil if there is none.
  static func length(atStartOf text: UnsafeRawBufferPointer) -> Int? {
    var index = 0
    func isDigit() -> Bool { index < text.count && (0x30...0x39).contains(text[index]) }
    func skipDigits() -> Bool {
      guard isDigit() else { return false }
      while isDigit() { index += 1 }
      return true
    }
    if index < text.count, text[index] == UInt8(ascii: "-") { index += 1 }
    let first = index
    guard skipDigits(), text[first] != UInt8(ascii: "0") || index == first + 1 else { return nil }
    if index < text.count, text[index] == UInt8(ascii: ".") {
      index += 1
      guard skipDigits() else { return nil }
    }
    if index < text.count, text[index] | 0x20 == UInt8(ascii: "e") {
      index += 1
      if index < text.count, text[index] == UInt8(ascii: "+") || text[index] == UInt8(ascii: "-") {
        index += 1
      }
      guard skipDigits() else { return nil }
    }
    return index
  }

  /// The integer that `text` as a whole represents, also as `1.0` or `1e3`.
  static func integer<I: FixedWidthInteger>(_ text: UnsafeRawBufferPointer, as type: I.Type) -> I? {
    let isNegative = text.first == UInt8(ascii: "-")
    var index = isNegative ? 1 : 0
    guard index < text.count else { return nil }
    var value: I = 0
    while index < text.count {
      let digit = text[index] &- UInt8(ascii: "0")
      guard digit < 10 else { return self.unusualInteger(text) }
      let (product, overflows) = value.multipliedReportingOverflow(by: 10)
      let (sum, overflowsToo) =
        isNegative
        ? product.subtractingReportingOverflow(I(digit)) : product.addingReportingOverflow(I(digit))
      // With a negative exponent, the number may still fit.
      if overflows || overflowsToo { return self.unusualInteger(text) }
      value = sum
      index += 1
    }
    return self.length(atStartOf: text) == text.count ? value : nil
  }

  /// An integer with a point or an exponent, digit by digit: a floating-point number might not hold it exactly.
  private static func unusualInteger<I: FixedWidthInteger>(_ text: UnsafeRawBufferPointer) -> I? {
    guard self.length(atStartOf: text) == text.count else { return nil }
    let isNegative = text.first == UInt8(ascii: "-")
    let mantissa = text.prefix { $0 | 0x20 != UInt8(ascii: "e") }
    // The number of digits before the point, after the exponent has moved the point.
    let point = mantissa.firstIndex(of: UInt8(ascii: ".")) ?? mantissa.endIndex
    var wholeDigits = point - (isNegative ? 1 : 0) + self.exponent(text.dropFirst(mantissa.count))
    var value: I = 0
    func append(_ digit: UInt8) -> Bool {
      let (product, overflows) = value.multipliedReportingOverflow(by: 10)
      let (sum, overflowsToo) =
        isNegative
        ? product.subtractingReportingOverflow(I(digit)) : product.addingReportingOverflow(I(digit))
      value = sum
      return !overflows && !overflowsToo
    }
    for byte in mantissa {
      let digit = byte &- UInt8(ascii: "0")
      if digit > 9 { continue }
      if wholeDigits > 0 {
        guard append(digit) else { return nil }
        wholeDigits -= 1
      } else if digit != 0 {
        return nil
      }
    }
    while wholeDigits > 0, value != 0 {
      guard append(0) else { return nil }
      wholeDigits -= 1
    }
    return value
  }

  /// The exponent in `e-5`, exact up to 2^50, which is more than any text's length; 0 for empty text.
  private static func exponent(_ text: UnsafeRawBufferPointer.SubSequence) -> Int {
    var value = 0
    for byte in text {
      let digit = byte &- UInt8(ascii: "0")
      if digit <= 9, value < 1 << 50 { value = 10 * value + Int(digit) }
    }
    return text.contains(UInt8(ascii: "-")) ? -value : value
  }

  /// The number that `text` as a whole represents; nil if it is too large.
  static func floatingPoint<F: BinaryFloatingPoint & LosslessStringConvertible>(
    _ text: UnsafeRawBufferPointer,
    as type: F.Type
  ) -> F? {
    guard self.length(atStartOf: text) == text.count else { return nil }
    return F(String(decoding: text, as: UTF8.self)).flatMap { $0.isFinite ? $0 : nil }
  }
}
