internal import SwiftProtobuf

/// An option with its name, as written behind `option` or in brackets.
struct OptionStatement {
  static let longestLine = 100

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

  /// The statement in one line, or with a line for each member of a message if it would be too long.
  func lines(_ start: String, end: String) -> [String] {
    let line = "\(start)\(self.line)\(end)"
    if line.utf8.count <= Self.longestLine || !self.value.isMessage { return [line] }
    let indentation = String(start.prefix { $0 == " " })
    let inner = self.value.lines.map { "\(indentation)  \($0)" }
    return ["\(start)\(self.name) = {"] + inner + ["\(indentation)}\(end)"]
  }

  /// The statements for a member of an options message.
  ///
  /// - Parameter prefix: The names of the messages around the member.
  static func all(
    of member: OptionValue.Member,
    prefix: String = "",
    number: Int32,
    _ names: TypeNames,
    scope: String
  ) -> [OptionStatement] {
    let field = member.field
    let name = prefix + (field.isExtension ? "(\(names.name(".\(field.name)", in: scope)))" : field.name)
    // Features are set one by one, not as one message.
    let isFeatures = field.typeName == "google.protobuf.FeatureSet" || !prefix.isEmpty
    if isFeatures, case .message(let inner) = member.value, !field.isRepeated, !inner.isEmpty {
      return inner.flatMap { self.all(of: $0, prefix: "\(name).", number: number, names, scope: scope) }
    }
    return [OptionStatement(name, member.value, number: number)]
  }
}

extension ProtoPrinter {
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
      self.lines.separate()
    }
    for option in self.locations.inSourceOrder(statements, path: { path + [$0.number] }) {
      let location = self.locations.location(at: path + [option.number])
      self.lines.statement(option.lines("option ", end: ";"), at: location)
    }
  }

  /// Prints which of the last options were left out.
  mutating func printNotes() {
    for note in self.options.leftOut {
      self.lines.append("// Left out of the options: \(ProtoText.comment(note))")
    }
    self.options.leftOut = []
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
      self.lines.leadingComments(location)
      self.printNotes()
    }
    var location = location
    if !notes.isEmpty {
      location?.leadingComments = ""
      location?.leadingDetachedComments = []
    }
    guard 2 * self.lines.depth + head.utf8.count + list.utf8.count >= OptionStatement.longestLine,
      !options.isEmpty
    else {
      self.lines.statement(["\(head)\(list);"], at: location)
      return
    }
    var lines = ["\(head) ["]
    for (number, option) in options.enumerated() {
      lines += option.lines("  ", end: number + 1 < options.count ? "," : "")
    }
    self.lines.statement(lines + ["];"], at: location)
  }

  mutating func statements(
    _ options: some SwiftProtobuf.Message,
    named type: String,
    scope: String
  ) -> [OptionStatement] {
    let members = self.options.members(of: options, named: "google.protobuf.\(type)")
    return members.flatMap {
      OptionStatement.all(of: $0, number: $0.field.number, self.names, scope: scope)
    }
  }
}
