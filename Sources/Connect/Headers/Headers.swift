/// HTTP header or trailer fields: an ordered list of names and values.
///
/// Names are case-insensitive and kept in lower case, which is how HTTP/2 sends them. A name may occur more
/// than once; its values keep their order and are never joined or split at commas. Any string is accepted
/// here; what may not go on the wire is refused when the call starts (see ``ConnectError``).
///
/// ```swift
/// var headers: Headers = ["Authorization": ["Bearer \(token)"]]
/// headers["x-request-id"] = ["42"]
/// ```
public struct Headers: Sendable {
  /// One field line. `name` is in lower case.
  public struct Field: Sendable, Hashable {
    /// The name of the field, in lower case.
    public let name: String
    /// The value of the field, as it is on the wire.
    public var value: String

    /// A field; `name` may be in any case.
    public init(name: String, value: String) {
      self.name = name.asciiLowercased
      self.value = value
    }

    /// A field whose name is known to be in lower case.
    package init(lowercasedName: String, value: String) {
      self.name = lowercasedName
      self.value = value
    }
  }

  package private(set) var fields: [Field]

  /// No fields.
  public init() {
    self.fields = []
  }

  /// The fields of a sequence, in its order.
  public init(_ fields: some Sequence<Field>) {
    self.fields = Array(fields)
  }

  /// The values of `name` in order; empty if the name is absent. Setting replaces all of them, at the place
  /// of the first; setting an empty array removes the name.
  public subscript(name: String) -> [String] {
    get {
      let name = name.asciiLowercased
      return self.fields.compactMap { $0.name == name ? $0.value : nil }
    }
    set {
      let name = name.asciiLowercased
      let replacement = newValue.map { Field(name: name, value: $0) }
      guard let first = self.fields.firstIndex(where: { $0.name == name }) else {
        self.fields.append(contentsOf: replacement)
        return
      }
      self.fields.removeAll { $0.name == name }
      self.fields.insert(contentsOf: replacement, at: first)
    }
  }

  /// The first value of `name`, without building an array.
  public func first(_ name: String) -> String? {
    self.isEmpty ? nil : self.first(lowercased: name.asciiLowercased)
  }

  /// The first value of a name that is in lower case.
  package func first(lowercased name: String) -> String? {
    // By length first: most names differ in it.
    let count = name.utf8.count
    for index in self.fields.indices
    where self.fields[index].name.utf8.count == count && self.fields[index].name == name {
      return self.fields[index].value
    }
    return nil
  }

  /// Whether there is a field with this name, in any case.
  public func contains(_ name: String) -> Bool {
    self.first(name) != nil
  }

  /// Adds a field at the end. Values that `name` already has stay.
  public mutating func add(name: String, value: String) {
    self.fields.append(Field(name: name, value: value))
  }

  package mutating func append(_ field: Field) {
    // Most requests get at most one field. A list of one field costs less than a list that grows.
    if self.fields.isEmpty { self.fields = [field] } else { self.fields.append(field) }
  }

  /// Adds fields behind all others, in the order of `other`. Names that are already present keep their values.
  public mutating func append(contentsOf other: some Sequence<Field>) {
    self.fields.append(contentsOf: other)
  }

  /// The fields of both in one list, with room for some more.
  func joined(with other: Headers, extraCapacity: Int) -> Headers {
    var result = Headers()
    result.fields.reserveCapacity(self.count + other.count + extraCapacity)
    result.fields.append(contentsOf: self.fields)
    result.fields.append(contentsOf: other.fields)
    return result
  }

  /// Makes room for `count` fields in all, so that adding them allocates no more memory.
  public mutating func reserveCapacity(_ count: Int) {
    self.fields.reserveCapacity(count)
  }

  /// Removes all fields with this name, in any case.
  public mutating func remove(name: String) {
    let name = name.asciiLowercased
    guard self.fields.contains(where: { $0.name == name }) else { return }
    self.fields.removeAll { $0.name == name }
  }
}

extension Headers: RandomAccessCollection {
  public var startIndex: Int { self.fields.startIndex }
  public var endIndex: Int { self.fields.endIndex }
  public subscript(position: Int) -> Field { self.fields[position] }
}

/// Two lists are equal if each name has the same values in the same order; the order of different names does
/// not count.
extension Headers: Hashable {
  public static func == (lhs: Headers, rhs: Headers) -> Bool {
    guard lhs.count == rhs.count else { return false }
    if lhs.fields == rhs.fields { return true }
    return lhs.valuesByName == rhs.valuesByName
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(self.valuesByName)
  }

  private var valuesByName: [String: [String]] {
    Dictionary(grouping: self.fields, by: \.name).mapValues { $0.map(\.value) }
  }
}

extension Headers: ExpressibleByDictionaryLiteral {
  public init(dictionaryLiteral elements: (String, [String])...) {
    self.fields = elements.flatMap { name, values in values.map { Field(name: name, value: $0) } }
  }
}

extension Headers: CustomStringConvertible {
  public var description: String {
    "[" + self.fields.map { "\($0.name): \($0.value)" }.joined(separator: ", ") + "]"
  }
}

extension String {
  /// The string with the letters A to Z in lower case; the same storage if there are none.
  package var asciiLowercased: String {
    var text = self
    guard text.withUTF8({ $0.hasByte { ByteTest($0 &- UInt8(ascii: "A") < 26) } }) else { return self }
    // Writes in place, so that a name of up to 15 bytes costs no allocation.
    return String(unsafeUninitializedCapacity: self.utf8.count) { buffer in
      var count = 0
      for byte in self.utf8 where count < buffer.count {
        buffer[count] = byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
        count += 1
      }
      return count
    }
  }
}
