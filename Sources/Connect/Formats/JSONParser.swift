/// Parses JSON (RFC 8259) strictly, and refuses names that an object has twice: one of the two would be lost.
package struct JSONParser {
  /// What is wrong, and where.
  package struct Failure: Swift.Error, Hashable {
    package var problem: String
    /// Both from 1; the column counts bytes.
    package var line: Int
    package var column: Int
  }

  /// How deep values may be nested.
  package static let maximumDepth = 64
  /// How many names of an object are compared one by one.
  private static let mostCompared = 16
  private static let digits = UInt8(ascii: "0")...UInt8(ascii: "9")

  private let bytes: [UInt8]
  private let maximumDepth: Int
  private var position = 0

  private init(_ text: [UInt8], maximumDepth: Int) {
    // A parser may skip it (RFC 8259, section 8.1).
    self.bytes = ByteOrderMark.removed(from: text)
    self.maximumDepth = maximumDepth
  }

  package static func parse(
    _ text: String,
    maximumDepth: Int = JSONParser.maximumDepth
  ) throws(Failure) -> JSONValue {
    try self.parse(Array(text.utf8), maximumDepth: maximumDepth)
  }

  /// - Parameter text: UTF-8. What is not valid in strings is replaced (U+FFFD).
  package static func parse(
    _ text: [UInt8],
    maximumDepth: Int = JSONParser.maximumDepth
  ) throws(Failure) -> JSONValue {
    var parser = JSONParser(text, maximumDepth: maximumDepth)
    let value = try parser.value(depth: 0)
    parser.skipSpace()
    guard parser.next == nil else { throw parser.failure("there is more text behind the value") }
    return value
  }

  // MARK: - Values

  private mutating func value(depth: Int) throws(Failure) -> JSONValue {
    guard depth < self.maximumDepth else {
      throw self.failure("values are nested deeper than \(self.maximumDepth) levels")
    }
    self.skipSpace()
    switch self.next {
    case UInt8(ascii: "{"): return try self.object(depth: depth)
    case UInt8(ascii: "["): return try self.array(depth: depth)
    case UInt8(ascii: "\""): return .string(try self.string())
    case UInt8(ascii: "-"): return try self.number()
    case let byte? where Self.digits.contains(byte): return try self.number()
    case UInt8(ascii: "t"): return try self.word("true", .bool(true))
    case UInt8(ascii: "f"): return try self.word("false", .bool(false))
    case UInt8(ascii: "n"): return try self.word("null", .null)
    case nil: throw self.failure("a value is missing at the end")
    default: throw self.failure("a value is missing")
    }
  }

  private mutating func word(_ word: String, _ value: JSONValue) throws(Failure) -> JSONValue {
    guard self.bytes[self.position...].starts(with: word.utf8) else {
      throw self.failure("a value is missing")
    }
    self.position += word.utf8.count
    return value
  }

  private mutating func object(depth: Int) throws(Failure) -> JSONValue {
    self.position += 1
    var members: [JSONValue.Member] = []
    // Only of large objects: the names of small ones are compared one by one, which takes less time than a hash of each.
    var names: Set<String> = []
    self.skipSpace()
    if self.take("}") { return .object([]) }
    members.reserveCapacity(8)
    repeat {
      self.skipSpace()
      guard self.next == UInt8(ascii: "\"") else { throw self.failure("a name in double quotes is missing") }
      let name = try self.string()
      if members.count == Self.mostCompared { names = Set(members.map(\.name)) }
      let isNew =
        members.count < Self.mostCompared
        ? !members.contains { $0.name == name } : names.insert(name).inserted
      guard isNew else { throw self.failure("the object has the name \"\(name)\" twice") }
      self.skipSpace()
      guard self.take(":") else { throw self.failure("the colon behind a name is missing") }
      members.append(JSONValue.Member(name: name, value: try self.value(depth: depth + 1)))
      self.skipSpace()
    } while self.take(",")
    guard self.take("}") else { throw self.failure("a comma or a closing brace is missing") }
    return .object(members)
  }

  private mutating func array(depth: Int) throws(Failure) -> JSONValue {
    self.position += 1
    var values: [JSONValue] = []
    self.skipSpace()
    if self.take("]") { return .array([]) }
    repeat {
      values.append(try self.value(depth: depth + 1))
      self.skipSpace()
    } while self.take(",")
    guard self.take("]") else { throw self.failure("a comma or a closing bracket is missing") }
    return .array(values)
  }

  private mutating func number() throws(Failure) -> JSONValue {
    let start = self.position
    _ = self.take("-")
    let integer = self.digits()
    guard integer.count == 1 || (!integer.isEmpty && integer.first != UInt8(ascii: "0")) else {
      throw self.failure("a number has no digits, or begins with zero")
    }
    if self.take("."), self.digits().isEmpty { throw self.failure("a number has no digits behind its point") }
    if self.take("e") || self.take("E") {
      if !self.take("+") { _ = self.take("-") }
      if self.digits().isEmpty { throw self.failure("a number has no digits in its exponent") }
    }
    return .number(String(decoding: self.bytes[start..<self.position], as: UTF8.self))
  }

  private mutating func digits() -> ArraySlice<UInt8> {
    let start = self.position
    while let byte = self.next, Self.digits.contains(byte) { self.position += 1 }
    return self.bytes[start..<self.position]
  }

  // MARK: - Strings

  private mutating func string() throws(Failure) -> String {
    self.position += 1
    // What comes before the last escape.
    var result: [UInt8] = []
    var start = self.position
    while let byte = self.next {
      self.position += 1
      switch byte {
      case UInt8(ascii: "\""):
        let rest = self.bytes[start..<self.position - 1]
        return String(decoding: result.isEmpty ? rest : result[...] + rest, as: UTF8.self)
      case UInt8(ascii: "\\"):
        result += self.bytes[start..<self.position - 1]
        result += String(Character(try self.escape())).utf8
        start = self.position
      case 0..<0x20: throw self.failure("a string has a control character, or its closing quote is missing")
      default: break
      }
    }
    throw self.failure("the closing quote of a string is missing")
  }

  private mutating func escape() throws(Failure) -> Unicode.Scalar {
    do throws(JSONEscape.Failure) {
      let rest = self.bytes[self.position...]
      let (scalar, length) = try rest.withUnsafeBufferPointer { bytes throws(JSONEscape.Failure) in
        try JSONEscape.scalar(atStartOf: bytes)
      }
      self.position += length
      return scalar
    } catch {
      self.position += error.offset
      throw self.failure(error.problem)
    }
  }

  // MARK: - Bytes

  private var next: UInt8? {
    self.position < self.bytes.count ? self.bytes[self.position] : nil
  }

  private mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard self.next == UInt8(ascii: character) else { return false }
    self.position += 1
    return true
  }

  private mutating func skipSpace() {
    while let byte = self.next, byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09 {
      self.position += 1
    }
  }

  private func failure(_ problem: String) -> Failure {
    let before = self.bytes[..<self.position]
    let lineStart = before.lastIndex(of: 0x0a).map { $0 + 1 } ?? 0
    return Failure(
      problem: problem,
      line: before.count { $0 == 0x0a } + 1,
      column: self.position - lineStart + 1
    )
  }
}
