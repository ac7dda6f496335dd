extension JSONValue {
  /// The value with the members of its objects in alphabetical order.
  package var sorted: JSONValue {
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
  package static func members(_ members: [String: JSONValue]) -> JSONValue {
    JSONValue.object(members.map { Member(name: $0, value: $1) }).sorted
  }

  /// JSON with a line for each element; unchanged if it is not valid.
  package static func indented(_ json: String) -> String {
    (try? JSONParser.parse(json, maximumDepth: .max))?.text(lineLength: 0) ?? json
  }

  /// The value as text for people: a line for each element, or one line in all if it is short.
  ///
  /// - Parameter lineLength: Lists and objects that fit into so many columns take one line.
  package func text(lineLength: Int = 100) -> String {
    var text = ""
    self.write(to: &text, indentation: 0, column: 0, lineLength)
    return text
  }

  /// - Parameter column: Where the value begins in its line.
  private func write(to text: inout String, indentation: Int, column: Int, _ lineLength: Int) {
    let elements = self.elements
    if let line = elements.isEmpty ? self.description : self.line(upTo: lineLength - column) {
      text += line
      return
    }
    let end = "\n" + String(repeating: " ", count: indentation)
    var separator = self.brackets.opening
    for (name, value) in elements {
      text += separator + end + "  " + name
      value.write(
        to: &text,
        indentation: indentation + 2,
        column: indentation + 2 + name.utf8.count,
        lineLength
      )
      separator = ","
    }
    text += end + self.brackets.closing
  }

  /// The value in one line; nil if that is longer.
  private func line(upTo length: Int) -> String? {
    guard length > 1 else { return nil }
    var line = ""
    switch self {
    case .array, .object:
      for (name, value) in self.elements {
        guard let part = value.line(upTo: length - line.utf8.count - name.utf8.count - 2) else { return nil }
        line += (line.isEmpty ? "" : ", ") + name + part
      }
      line = self.brackets.opening + line + self.brackets.closing
    case .string(let text) where text.utf8.count > length: return nil
    default: line = self.description
    }
    return line.utf8.count <= length ? line : nil
  }

  /// The elements of a list or an object, each with the text in front of its value; empty for other values.
  private var elements: [(name: String, value: JSONValue)] {
    switch self {
    case .array(let values): values.map { ("", $0) }
    case .object(let members): members.map { (JSONValue.string($0.name).description + ": ", $0.value) }
    default: []
    }
  }

  private var brackets: (opening: String, closing: String) {
    if case .array = self { ("[", "]") } else { ("{", "}") }
  }
}
