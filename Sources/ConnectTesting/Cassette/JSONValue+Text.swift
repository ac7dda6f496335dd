internal import ConnectChannels

extension JSONValue {
  /// Lists and objects that fit into so many columns take one line.
  private static let lineLength = 100

  /// The value with the members of its objects in alphabetical order.
  var sorted: JSONValue {
    switch self {
    case .array(let values): .array(values.map(\.sorted))
    case .object(let members):
      .object(
        members.map { Member(name: $0.name, value: $0.value.sorted) }
          .sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
      )
    default: self
    }
  }

  /// An object, with its members sorted.
  static func members(_ members: [String: JSONValue]) -> JSONValue {
    JSONValue.object(members.map { Member(name: $0, value: $1) }).sorted
  }

  /// The value as text for people: a line for each element, or one line in all if it is short.
  var text: String {
    var text = ""
    self.write(to: &text, indentation: 0, column: 0)
    return text
  }

  /// - Parameter column: Where the value begins in its line.
  private func write(to text: inout String, indentation: Int, column: Int) {
    if let line = self.line(upTo: Self.lineLength - column) {
      text += line
      return
    }
    let space = String(repeating: " ", count: indentation + 2)
    let end = "\n" + String(repeating: " ", count: indentation)
    switch self {
    case .array(let values):
      text += "["
      for (index, value) in values.enumerated() {
        text += (index > 0 ? ",\n" : "\n") + space
        value.write(to: &text, indentation: indentation + 2, column: indentation + 2)
      }
      text += end + "]"
    case .object(let members):
      text += "{"
      for (index, member) in members.enumerated() {
        let name = JSONValue.string(member.name).description + ": "
        text += (index > 0 ? ",\n" : "\n") + space + name
        value(of: member).write(
          to: &text,
          indentation: indentation + 2,
          column: indentation + 2 + name.utf8.count
        )
      }
      text += end + "}"
    default: text += self.description
    }
  }

  private func value(of member: Member) -> JSONValue { member.value }

  /// The value in one line; nil if that is longer.
  private func line(upTo length: Int) -> String? {
    guard length > 1 else { return nil }
    var line = ""
    switch self {
    case .array(let values):
      for value in values {
        guard let part = value.line(upTo: length - line.utf8.count - 2) else { return nil }
        line += (line.isEmpty ? "" : ", ") + part
      }
      line = "[\(line)]"
    case .object(let members):
      for member in members {
        let name = JSONValue.string(member.name).description + ": "
        guard let part = member.value.line(upTo: length - line.utf8.count - name.utf8.count - 2) else {
          return nil
        }
        line += (line.isEmpty ? "" : ", ") + name + part
      }
      line = "{\(line)}"
    case .string(let text) where text.utf8.count > length: return nil
    default: line = self.description
    }
    return line.utf8.count <= length ? line : nil
  }
}
