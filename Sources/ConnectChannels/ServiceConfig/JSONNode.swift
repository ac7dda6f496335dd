package import Connect

/// A JSON value and where it is, for errors that name the place.
///
/// Values are read by the rules of proto3's JSON: null is the same as absent, and integers may be strings
/// (<https://protobuf.dev/programming-guides/json>).
package struct JSONNode {
  package let value: JSONValue
  /// For example `methodConfig[0].timeout`; empty for the whole text.
  package let path: String

  package init(_ value: JSONValue, path: String = "") {
    self.value = value
    self.path = path
  }

  package func error(_ problem: String) -> ServiceConfigError {
    ServiceConfigError(path: self.path, problem: problem)
  }

  private func mismatch(_ expected: String) -> ServiceConfigError {
    self.error("expected \(expected), found \(self.value.kind)")
  }

  // MARK: - Objects and lists

  package func members() throws(ServiceConfigError) -> [JSONValue.Member] {
    guard case .object(let members) = self.value else { throw self.mismatch("an object") }
    return members
  }

  /// The member of an object; nil if it is absent or null.
  package func member(_ name: String) throws(ServiceConfigError) -> JSONNode? {
    guard let member = try self.members().first(where: { $0.name == name }), member.value != .null else {
      return nil
    }
    return JSONNode(member.value, path: self.path.isEmpty ? name : "\(self.path).\(name)")
  }

  package func required(_ name: String) throws(ServiceConfigError) -> JSONNode {
    guard let node = try self.member(name) else { throw self.error("\"\(name)\" is missing") }
    return node
  }

  package func elements() throws(ServiceConfigError) -> [JSONNode] {
    guard case .array(let values) = self.value else { throw self.mismatch("a list") }
    return values.enumerated().map { JSONNode($1, path: "\(self.path)[\($0)]") }
  }

  // MARK: - Scalars

  package func bool() throws(ServiceConfigError) -> Bool {
    guard case .bool(let value) = self.value else { throw self.mismatch("true or false") }
    return value
  }

  package func string() throws(ServiceConfigError) -> String {
    guard case .string(let value) = self.value else { throw self.mismatch("a string") }
    return value
  }

  /// An integer. `1.0`, `1e3` and `"1"` count.
  package func integer(in range: ClosedRange<Int>) throws(ServiceConfigError) -> Int {
    let text = try self.digits("an integer")
    // Within 2^53 a Double is exact.
    let number = Int(text) ?? Double(text).flatMap { abs($0) < 0x1p53 ? Int(exactly: $0) : nil }
    guard let number else { throw self.error("expected an integer, found \(text.prefix(40))") }
    guard range.contains(number) else {
      let bound = number < range.lowerBound ? "at least \(range.lowerBound)" : "at most \(range.upperBound)"
      throw self.error("has to be \(bound), and is \(number)")
    }
    return number
  }

  func number() throws(ServiceConfigError) -> Double {
    let text = try self.digits("a number")
    guard let number = Double(text), number.isFinite else {
      throw self.error("expected a number, found \(text.prefix(40))")
    }
    return number
  }

  private func digits(_ expected: String) throws(ServiceConfigError) -> String {
    switch self.value {
    case .number(let text), .string(let text): return text
    default: throw self.mismatch(expected)
    }
  }

  func nonNegativeNumber() throws(ServiceConfigError) -> Double {
    let number = try self.number()
    guard number >= 0 else { throw self.error("has to be at least 0, and is \(number)") }
    return number
  }

  /// A duration that is not negative: seconds with up to nine decimals and `s`, as in `"1.5s"`.
  package func duration() throws(ServiceConfigError) -> Duration {
    let text = try self.string()
    guard let duration = Duration(proto3JSON: text) else {
      throw self.error("expected a duration such as \"1.5s\", found \"\(text.prefix(40))\"")
    }
    guard duration >= .zero else { throw self.error("has to be at least 0s, and is \(text)") }
    return duration
  }
}

extension Duration {
  /// About 10,000 years, the limit of `google.protobuf.Duration`.
  private static let maximumSeconds = 315_576_000_000

  /// Parses `1s`, `1.5s`, `.1s` or `-1s`; nil for everything else, and beyond protobuf's limit.
  init?(proto3JSON text: String) {
    var bytes = Array(text.utf8)[...]
    guard bytes.popLast() == UInt8(ascii: "s") else { return nil }
    let isNegative = bytes.first == UInt8(ascii: "-")
    if isNegative { bytes = bytes.dropFirst() }
    let parts = bytes.split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
    let fraction = parts.count == 2 ? parts[1] : []
    guard !parts[0].isEmpty || !fraction.isEmpty, fraction.count <= 9,
      let seconds = parts[0].isEmpty ? 0 : ASCII.decimal(parts[0], maximum: Self.maximumSeconds),
      let digits = fraction.isEmpty ? 0 : ASCII.decimal(fraction, maximum: 999_999_999)
    else { return nil }
    var nanoseconds = digits
    for _ in fraction.count..<9 { nanoseconds *= 10 }
    let value = Duration.seconds(seconds) + .nanoseconds(nanoseconds)
    self = isNegative ? .zero - value : value
  }
}
