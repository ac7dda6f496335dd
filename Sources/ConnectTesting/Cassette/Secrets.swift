internal import Connect
internal import NIOCore

/// The values that were taken out of a call, to be looked for in the rest of the call.
struct Secrets: Sendable {
  /// Shorter values may stand anywhere by chance.
  private static let minimumSize = 6
  private static let maximumCount = 256

  private var values: [[UInt8]] = []
  /// The paths of the fields that were found.
  private(set) var foundPaths: Set<String> = []
  /// Whether something was taken out of a message.
  var hasChangedMessages = false

  // MARK: Finding

  /// The value of a header.
  mutating func add(header name: String, _ value: String, isBinary: Bool) {
    self.add(Array(value.utf8))
    // Without the scheme, as in `Bearer …`.
    if name.hasSuffix("authorization"), let space = value.utf8.firstIndex(of: UInt8(ascii: " ")) {
      self.add(Array(value.utf8[value.utf8.index(after: space)...]))
    }
    if isBinary, let bytes = Base64.decode(value) { self.add(Array(bytes.readableBytesView)) }
  }

  /// The value of a field.
  mutating func add(_ value: JSONValue, at path: FieldPath) {
    self.foundPaths.insert(path.text)
    self.add(value)
  }

  private mutating func add(_ value: JSONValue) {
    switch value {
    case .string(let text), .number(let text): self.add(Array(text.utf8))
    case .array(let values): for value in values { self.add(value) }
    case .object(let members): for member in members { self.add(member.value) }
    case .null, .bool: break
    }
  }

  private mutating func add(_ value: [UInt8]) {
    guard value.count >= Self.minimumSize, self.values.count < Self.maximumCount,
      value != Array(FieldPath.placeholder.utf8), !self.values.contains(value)
    else { return }
    self.values.append(value)
    // A value that contains another one is replaced first.
    self.values.sort { $0.count > $1.count }
  }

  mutating func merge(_ other: Secrets) {
    self.foundPaths.formUnion(other.foundPaths)
    for value in other.values { self.add(value) }
  }

  // MARK: Removing

  /// `text` without secrets. A percent-encoded or base64 text that contains a secret is replaced as a whole.
  func removed(from text: String) -> String {
    guard !self.values.isEmpty else { return text }
    var bytes = Array(text.utf8)
    for value in self.values where Self.contains(bytes, value) {
      bytes = Self.replacing(value, in: bytes)
    }
    let result = String(decoding: bytes, as: UTF8.self)
    return self.isHidden(in: result) ? FieldPath.placeholder : result
  }

  /// - Parameter replacement: What stands in the place of texts with a secret.
  func removed(from value: JSONValue, with replacement: FieldPath.Replacement = .placeholder) -> JSONValue {
    self.values.isEmpty ? value : self.rest(of: value, replacement) ?? .null
  }

  /// Nil for a value that is to be absent.
  private func rest(of value: JSONValue, _ replacement: FieldPath.Replacement) -> JSONValue? {
    switch value {
    case .string(let text):
      if replacement == .absence { return self.stand(in: text) ? nil : value }
      return .string(self.removed(from: text))
    case .number(let text): return self.values.contains(Array(text.utf8)) ? .number("0") : value
    case .array(let values): return .array(values.compactMap { self.rest(of: $0, replacement) })
    case .object(let members):
      return .object(
        members.compactMap { member in
          self.rest(of: member.value, replacement).map { JSONValue.Member(name: member.name, value: $0) }
        }
      )
    case .null, .bool: return value
    }
  }

  func removed(from headers: Headers) -> Headers {
    guard !self.values.isEmpty else { return headers }
    return Headers(headers.map { Headers.Field(name: $0.name, value: self.removed(from: $0.value)) })
  }

  // MARK: Checking

  func stand(in bytes: ByteBuffer) -> Bool {
    guard !self.values.isEmpty else { return false }
    let bytes = Array(bytes.readableBytesView)
    return self.values.contains { Self.contains(bytes, $0) }
  }

  /// Whether a secret is left in a text or a number. Names of fields and headers may be the same as a secret by chance.
  func stand(in value: JSONValue) -> Bool {
    guard !self.values.isEmpty else { return false }
    switch value {
    case .string(let text): return self.stand(in: text)
    case .number(let text): return self.values.contains(Array(text.utf8))
    case .array(let values): return values.contains { self.stand(in: $0) }
    case .object(let members): return members.contains { self.stand(in: $0.value) }
    case .null, .bool: return false
    }
  }

  private func stand(in text: String) -> Bool {
    let bytes = Array(text.utf8)
    return self.values.contains { Self.contains(bytes, $0) } || self.isHidden(in: text)
  }

  /// Whether the text contains a secret once it is decoded.
  private func isHidden(in text: String) -> Bool {
    if text.utf8.contains(UInt8(ascii: "%")), self.stand(in: ByteBuffer(string: PercentEncoding.decode(text)))
    {
      return true
    }
    return Base64.decode(text).map { self.stand(in: $0) } ?? false
  }

  // MARK: Bytes

  private static func contains(_ bytes: [UInt8], _ value: [UInt8]) -> Bool {
    self.firstIndex(of: value, in: bytes, from: 0) != nil
  }

  private static func replacing(_ value: [UInt8], in bytes: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    var start = 0
    while let index = self.firstIndex(of: value, in: bytes, from: start) {
      result += bytes[start..<index]
      result += FieldPath.placeholder.utf8
      start = index + value.count
    }
    return result + bytes[start...]
  }

  private static func firstIndex(of value: [UInt8], in bytes: [UInt8], from start: Int) -> Int? {
    guard bytes.count - start >= value.count else { return nil }
    return bytes.withUnsafeBufferPointer { bytes in
      value.withUnsafeBufferPointer { value in
        var index = start
        while index <= bytes.count - value.count {
          var count = 0
          while count < value.count, bytes[index + count] == value[count] { count += 1 }
          if count == value.count { return index }
          index += 1
        }
        return nil
      }
    }
  }
}
