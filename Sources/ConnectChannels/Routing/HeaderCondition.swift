internal import Connect

/// A ``HeaderMatch`` that is ready for calls.
struct HeaderCondition: Sendable {
  private enum Rule: Sendable {
    case plain(HeaderMatch.Rule)
    /// The texts of the rule are in lower case.
    case lowercased(HeaderMatch.Rule)
    case regex(RegularExpression)
    /// A pattern that cannot be used. Routes with it are refused before.
    case never
  }

  /// In lower case.
  private let name: String
  private let rule: Rule
  private let isInverted: Bool

  init(_ match: HeaderMatch) {
    self.name = match.name.lowercased()
    self.rule = Self.rule(match)
    self.isInverted = match.isInverted
  }

  private static func rule(_ match: HeaderMatch) -> Rule {
    let rule = match.rule
    guard match.ignoresCase else {
      guard case .regex(let pattern) = rule else { return .plain(rule) }
      return (try? RegularExpression(pattern)).map { .regex($0) } ?? .never
    }
    switch rule {
    case .exact(let text): return .lowercased(.exact(text.asciiLowercased))
    case .prefix(let text): return .lowercased(.prefix(text.asciiLowercased))
    case .suffix(let text): return .lowercased(.suffix(text.asciiLowercased))
    case .contains(let text): return .lowercased(.contains(text.asciiLowercased))
    case .regex(let pattern): return (try? RegularExpression(pattern)).map { .regex($0) } ?? .never
    case .range, .present: return .plain(rule)
    }
  }

  func holds(for headers: Headers) -> Bool {
    guard let value = headers.value(ofLowercased: self.name) else {
      return self.isInverted && self.isForAnyValue
    }
    return self.meets(value) != self.isInverted
  }

  private var isForAnyValue: Bool {
    if case .plain(.present) = self.rule { true } else { false }
  }

  private func meets(_ value: String) -> Bool {
    switch self.rule {
    case .plain(let rule): Self.meets(value, rule)
    case .lowercased(let rule): Self.meets(value.asciiLowercased, rule)
    case .regex(let expression): expression.matches(value)
    case .never: false
    }
  }

  private static func meets(_ value: String, _ rule: HeaderMatch.Rule) -> Bool {
    switch rule {
    case .exact(let text): value == text
    case .prefix(let text): value.utf8.starts(with: text.utf8)
    case .suffix(let text): value.utf8.reversed().starts(with: text.utf8.reversed())
    case .contains(let text): Self.contains(value, text)
    case .range(let range): Int64(value).map(range.contains) ?? false
    case .regex: false
    case .present: true
    }
  }

  private static func contains(_ value: String, _ text: String) -> Bool {
    var rest = value.utf8[...]
    while rest.count >= text.utf8.count {
      if rest.starts(with: text.utf8) { return true }
      rest = rest.dropFirst()
    }
    return false
  }
}

extension Headers {
  /// The value of a header, several values with commas between them; nil if there is none. Binary headers have no value for
  /// routes (gRFC A31). The type of the content, which is set later, counts as that of gRPC (A28), whatever the protocol.
  ///
  /// - Parameter name: In lower case.
  func value(ofLowercased name: String) -> String? {
    if name.hasSuffix("-bin") { return nil }
    var value: String?
    for field in self where field.name == name {
      // One value costs no allocation.
      if let before = value { value = "\(before),\(field.value)" } else { value = field.value }
    }
    if value == nil, name == "content-type" { return "application/grpc" }
    return value
  }
}
