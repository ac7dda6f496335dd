internal import SwiftProtobuf

/// An option with its name, as written behind `option` or in brackets.
struct OptionStatement {
  let name: String
  let value: OptionValue
  /// The field number in the options message.
  let number: Int32

  init(_ name: String, _ value: OptionValue, number: Int32) {
    self.name = name
    self.value = value
    self.number = number
  }

  init(_ name: String, _ literal: String) {
    self.init(name, .literal(literal), number: 0)
  }

  var line: String { "\(self.name) = \(self.value.line)" }
}

extension ProtoPrinter {
  private static let longestLine = 100

  /// The statements at the beginning of a file, message, enum, service or oneof.
  mutating func printOptions(
    _ options: some SwiftProtobuf.Message,
    named type: String,
    at path: [Int32],
    scope: String
  ) {
    let statements = self.statements(options, named: type, scope: scope)
    if !self.options.leftOut.isEmpty {
      self.printNotes()
      self.needsBlankLine = true
    }
    for option in self.inSourceOrder(statements, at: path) {
      let location = self.locations.location(at: path + [option.number])
      let line = "option \(option.line);"
      if line.utf8.count <= Self.longestLine || !option.value.isMessage {
        self.statement([line], at: location)
      } else {
        let inner = option.value.lines.map { "  \($0)" }
        self.statement(["option \(option.name) = {"] + inner + ["};"], at: location)
      }
    }
  }

  private func inSourceOrder(_ options: [OptionStatement], at path: [Int32]) -> [OptionStatement] {
    let starts = options.compactMap { self.locations.start(of: path + [$0.number]) }
    guard starts.count == options.count else { return options }
    // Options of the same name keep their order.
    return zip(starts, options).enumerated()
      .sorted { ($0.element.0, $0.offset) < ($1.element.0, $1.offset) }.map(\.element.1)
  }

  /// Prints which of the last options were left out.
  mutating func printNotes() {
    for note in self.options.leftOut { self.line("// Left out of the options: \(ProtoText.comment(note))") }
    self.options.leftOut = []
  }

  mutating func inlineOptions(
    _ options: some SwiftProtobuf.Message,
    named type: String,
    scope: String
  ) -> [OptionStatement] {
    self.statements(options, named: type, scope: scope)
  }

  /// A statement with options in brackets.
  mutating func printStatement(
    _ head: String,
    _ options: [OptionStatement],
    at location: SourceLocations.Location?
  ) {
    let list = options.isEmpty ? "" : " [\(options.map(\.line).joined(separator: ", "))]"
    let notes = self.options.leftOut
    if !notes.isEmpty {
      // Comments of the statement come first, and stay with the statement.
      self.leadingComments(location)
      self.printNotes()
    }
    var location = location
    if !notes.isEmpty {
      location?.leadingComments = ""
      location?.leadingDetachedComments = []
    }
    guard 2 * self.depth + head.utf8.count + list.utf8.count >= Self.longestLine, !options.isEmpty else {
      self.statement(["\(head)\(list);"], at: location)
      return
    }
    var lines = ["\(head) ["]
    for (number, option) in options.enumerated() {
      let end = number + 1 < options.count ? "," : ""
      if option.line.utf8.count <= Self.longestLine || !option.value.isMessage {
        lines.append("  \(option.line)\(end)")
      } else {
        lines += ["  \(option.name) = {"] + option.value.lines.map { "    \($0)" } + ["  }\(end)"]
      }
    }
    self.statement(lines + ["];"], at: location)
  }

  mutating func statements(
    _ options: some SwiftProtobuf.Message,
    named type: String,
    scope: String
  ) -> [OptionStatement] {
    let members = self.options.members(of: options, named: "google.protobuf.\(type)")
    return members.flatMap { self.statements(of: $0, prefix: "", number: $0.field.number, scope: scope) }
  }

  private func statements(
    of member: OptionValue.Member,
    prefix: String,
    number: Int32,
    scope: String
  ) -> [OptionStatement] {
    let field = member.field
    let name =
      prefix + (field.isExtension ? "(\(self.names.name(".\(field.name)", in: scope)))" : field.name)
    // Features are set one by one, not as one message.
    let isFeatures = field.typeName == "google.protobuf.FeatureSet" || !prefix.isEmpty
    if isFeatures, case .message(let inner) = member.value, !field.isRepeated, !inner.isEmpty {
      return inner.flatMap { self.statements(of: $0, prefix: "\(name).", number: number, scope: scope) }
    }
    return [OptionStatement(name, member.value, number: number)]
  }
}
