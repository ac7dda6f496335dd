internal import Connect

/// A value that a provider has found.
package enum SettingValue: Sendable, Hashable {
  case text(String)
  case integer(Int)
  case number(Double)
  case flag(Bool)
  case list([String])
}

/// Why there is no value although there may be a setting.
package enum SettingFailure: Sendable, Hashable {
  /// It has not the type of its setting.
  case illTyped
  /// The provider has failed, with an error of this type.
  case unreadable(String)
}

/// One setting: its key, what it may be, and what it changes.
package struct Setting: Sendable {
  /// The type that a provider is asked for.
  package enum Kind: Sendable, Hashable {
    case text, integer, number, flag, list
  }

  /// The value is of no use. Nothing says what it is, as it may be a secret.
  struct Refusal: Error {
    var reason: String?
  }

  typealias Change<Value> = @Sendable (Value, inout SettingsDraft) throws(Refusal) -> Void

  /// Without the prefix, in components with dots between them.
  package let key: String
  package let kind: Kind
  /// What the value has to be, in words.
  package let expected: String
  /// Whether it may hold a password.
  package let isSecret: Bool
  let apply: Change<SettingValue>

  private init(
    _ key: String,
    _ kind: Kind,
    _ expected: String,
    isSecret: Bool = false,
    _ apply: @escaping Change<SettingValue>
  ) {
    self.key = key
    self.kind = kind
    self.expected = expected
    self.isSecret = isSecret
    self.apply = apply
  }

  // MARK: Kinds of settings

  static func text(
    _ key: String,
    _ expected: String,
    isSecret: Bool = false,
    _ change: @escaping Change<String>
  ) -> Setting {
    Setting(key, .text, expected, isSecret: isSecret) { (value, draft) throws(Refusal) in
      guard case .text(let text) = value, !text.isEmpty else { throw Refusal() }
      try change(text, &draft)
    }
  }

  static func integer(
    _ key: String,
    _ range: ClosedRange<Int>,
    _ change: @escaping Change<Int>
  ) -> Setting {
    let most = range.upperBound == .max ? "" : ", at most \(range.upperBound)"
    return Setting(key, .integer, "an integer, at least \(range.lowerBound)\(most)") {
      (value, draft) throws(Refusal) in
      guard case .integer(let number) = value, range.contains(number) else { throw Refusal() }
      try change(number, &draft)
    }
  }

  static func number(_ key: String, atLeast least: Double, _ change: @escaping Change<Double>) -> Setting {
    Setting(key, .number, "a number, at least \(least)") { (value, draft) throws(Refusal) in
      guard case .number(let number) = value, number.isFinite, number >= least else { throw Refusal() }
      try change(number, &draft)
    }
  }

  static func flag(_ key: String, _ change: @escaping Change<Bool>) -> Setting {
    Setting(key, .flag, "true or false") { (value, draft) throws(Refusal) in
      guard case .flag(let flag) = value else { throw Refusal() }
      try change(flag, &draft)
    }
  }

  static func choice<Value: Sendable>(
    _ key: String,
    _ choices: KeyValuePairs<String, Value>,
    _ change: @escaping Change<Value>
  ) -> Setting {
    let choices = choices.map { (name: $0.key, value: $0.value) }
    return Setting(key, .text, Self.words(choices.map(\.name), "or")) { (value, draft) throws(Refusal) in
      guard case .text(let text) = value, let choice = choices.first(where: { $0.name == text })
      else { throw Refusal() }
      try change(choice.value, &draft)
    }
  }

  /// A list without duplicates, of some of these.
  static func list<Value: Sendable>(
    _ key: String,
    _ choices: [(name: String, value: Value)],
    mayBeEmpty: Bool,
    _ change: @escaping Change<[Value]>
  ) -> Setting {
    let number = mayBeEmpty ? "a list" : "a list, not empty,"
    let expected = "\(number) of \(Self.words(choices.map(\.name), "and"))"
    return Setting(key, .list, expected) { (value, draft) throws(Refusal) in
      // An empty environment variable is a list of one empty text.
      guard case .list(let given) = value else { throw Refusal() }
      let names = given == [""] ? [] : given
      guard Set(names).count == names.count, mayBeEmpty || !names.isEmpty else { throw Refusal() }
      var values: [Value] = []
      for name in names {
        guard let choice = choices.first(where: { $0.name == name }) else { throw Refusal() }
        values.append(choice.value)
      }
      try change(values, &draft)
    }
  }

  static func duration(
    _ key: String,
    atLeast least: Duration = .zero,
    _ change: @escaping Change<Duration>
  ) -> Setting {
    let expected = least > .zero ? "\(Self.durations), at least \(least)" : Self.durations
    return Setting(key, .text, expected) { (value, draft) throws(Refusal) in
      guard case .text(let text) = value, let duration = Duration(setting: text), duration >= least
      else { throw Refusal() }
      try change(duration, &draft)
    }
  }

  /// A duration, or `none`.
  static func optionalDuration(
    _ key: String,
    atLeast least: Duration = .zero,
    _ change: @escaping Change<Duration?>
  ) -> Setting {
    let expected =
      least > .zero ? "\(Self.durations), at least \(least), or none" : "\(Self.durations), or none"
    return Setting(key, .text, expected) { (value, draft) throws(Refusal) in
      guard case .text(let text) = value else { throw Refusal() }
      if text == "none" { return try change(nil, &draft) }
      guard let duration = Duration(setting: text), duration >= least else { throw Refusal() }
      try change(duration, &draft)
    }
  }

  private static let durations = "a duration as text with a unit, such as 250ms, 1.5s, 2m or 1h"

  private static func words(_ names: [String], _ conjunction: String) -> String {
    guard let last = names.last, names.count > 1 else { return names.joined() }
    return "\(names.dropLast().joined(separator: ", ")) \(conjunction) \(last)"
  }
}

extension Duration {
  /// Parses a number, which may have a fraction, and a unit: `ms`, `s`, `m` or `h`. Up to 100 years.
  init?(setting text: String) {
    let units: [(name: String, milliseconds: Double)] = [
      ("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000),
    ]
    guard let unit = units.first(where: { text.hasSuffix($0.name) }) else { return nil }
    let number = text.dropLast(unit.name.count)
    // Only digits and a point, so neither signs, exponents, `nan` nor hexadecimal numbers.
    guard let first = number.utf8.first, let last = number.utf8.last, Self.isDigit(first), Self.isDigit(last),
      number.utf8.allSatisfy({ Self.isDigit($0) || $0 == UInt8(ascii: ".") }), let value = Double(number)
    else { return nil }
    let milliseconds = value * unit.milliseconds
    guard milliseconds <= 100 * 365.25 * 24 * 3_600_000 else { return nil }
    self = .milliseconds(milliseconds)
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
  }
}
