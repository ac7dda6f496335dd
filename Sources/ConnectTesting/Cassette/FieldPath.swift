internal import Connect

/// Where a field is in messages: `user.password`, `accounts[].token`.
struct FieldPath: Sendable, Hashable {
  private enum Step: Hashable {
    case member(String)
    /// The elements of a list, or the values of a map.
    case elements
  }

  /// What stands in a field's place.
  enum Replacement {
    /// A value of the same kind, which people see.
    case placeholder
    case absence
  }

  /// Replaces a text. It is also valid base64.
  static let placeholder = "REDACTED"
  private static let maximumSteps = 32
  /// How many forms of a path are tried with a type.
  private static let maximumForms = 1000

  let text: String
  private let steps: [Step]

  init(_ text: String) throws(CassetteError) {
    self.text = text
    var steps: [Step] = []
    for part in text.split(separator: ".", omittingEmptySubsequences: false) {
      var name = part
      var elementCount = 0
      while name.hasSuffix("[]") {
        name = name.dropLast(2)
        elementCount += 1
      }
      guard !name.isEmpty, !name.contains("["), !name.contains("]") else {
        throw CassetteError(
          place: "redaction",
          problem: "\"\(text)\" is no path of a field, such as \"user.password\" or \"accounts[].token\""
        )
      }
      steps.append(.member(String(name)))
      steps += Array(repeating: .elements, count: elementCount)
    }
    guard steps.count <= Self.maximumSteps else {
      throw CassetteError(place: "redaction", problem: "\"\(text)\" has more than \(Self.maximumSteps) steps")
    }
    self.steps = steps
  }

  // MARK: Redaction

  /// Takes the fields out of a message.
  ///
  /// - Parameter found: Called with each value that was taken out.
  func redact(_ message: inout JSONValue, with replacement: Replacement, _ found: (JSONValue) -> Void) {
    message = Self.redacted(message, self.steps[...], replacement, found) ?? .object([])
  }

  /// Nil for a value that is to be absent.
  private static func redacted(
    _ value: JSONValue,
    _ steps: ArraySlice<Step>,
    _ replacement: Replacement,
    _ found: (JSONValue) -> Void
  ) -> JSONValue? {
    guard let step = steps.first else {
      found(value)
      return replacement == .absence ? nil : self.neutral(value)
    }
    let rest = steps.dropFirst()
    switch (step, value) {
    case (.elements, .array(let values)):
      return .array(values.compactMap { self.redacted($0, rest, replacement, found) })
    case (.elements, .object(let members)):
      return .object(members.compactMap { self.redacted($0, rest, replacement, found) })
    case (.member, .array(let values)):
      return .array(values.compactMap { self.redacted($0, steps, replacement, found) })
    case (.member(let name), .object(let members)):
      let name = self.camelCased(name)
      return .object(
        members.compactMap { member in
          self.camelCased(member.name) == name ? self.redacted(member, rest, replacement, found) : member
        }
      )
    default: return value
    }
  }

  private static func redacted(
    _ member: JSONValue.Member,
    _ steps: ArraySlice<Step>,
    _ replacement: Replacement,
    _ found: (JSONValue) -> Void
  ) -> JSONValue.Member? {
    self.redacted(member.value, steps, replacement, found).map {
      JSONValue.Member(name: member.name, value: $0)
    }
  }

  private static func neutral(_ value: JSONValue) -> JSONValue {
    switch value {
    case .null: .null
    case .bool: .bool(false)
    case .number: .number("0")
    // 64-bit integers are strings in protobuf's JSON.
    case .string(let text): .string(Int128(text) == nil ? self.placeholder : "0")
    case .array: .array([])
    case .object: .object([])
    }
  }

  /// A field's name in JSON, as protobuf derives it from the name in the proto file.
  private static func camelCased(_ name: String) -> String {
    guard name.utf8.contains(UInt8(ascii: "_")) else { return name }
    var result: [UInt8] = []
    var isUppercase = false
    for byte in name.utf8 {
      if byte == UInt8(ascii: "_") {
        isUppercase = true
      } else {
        let isLowercase = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
        result.append(isUppercase && isLowercase ? byte & ~0x20 : byte)
        isUppercase = false
      }
    }
    return String(decoding: result, as: UTF8.self)
  }

  // MARK: Types

  /// Whether messages of the type can have such a field. Only for types that know their fields.
  func isKnown(to form: MessageForm) -> Bool {
    Self.forms(self.steps[...]).contains { form.accepts($0, isStrict: true) }
  }

  /// Messages with nothing but the field, in all forms that its parents may have.
  private static func forms(_ steps: ArraySlice<Step>) -> [JSONValue] {
    guard let step = steps.first else { return [.null] }
    let rest = steps.dropFirst()
    let inner: [JSONValue] =
      rest.isEmpty && step == .elements
      ? [.string(""), .number("0"), .bool(false), .object([])] : self.forms(rest)
    let all: [JSONValue]
    switch step {
    case .elements:
      all = inner.flatMap { value in
        // The keys of a map may be texts, numbers and booleans.
        [.array([value])] + ["0", "true"].map { .object([JSONValue.Member(name: $0, value: value)]) }
      }
    case .member(let name):
      // A path goes through lists by itself.
      let lists = if case .member = rest.first { inner.map { JSONValue.array([$0]) } } else { [JSONValue]() }
      all = (inner + lists).map { .object([JSONValue.Member(name: name, value: $0)]) }
    }
    return Array(all.prefix(self.maximumForms))
  }
}
