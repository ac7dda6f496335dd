internal import SwiftProtobuf

/// Lines of proto source with their indentation, blank lines and comments.
struct ProtoLines {
  typealias Location = SourceLocations.Location

  private(set) var text = ""
  private(set) var depth = 0
  /// Whether a blank line should follow the last line.
  private var needsBlankLine = false

  mutating func append(_ line: String) {
    if self.needsBlankLine {
      self.needsBlankLine = false
      self.text += "\n"
    }
    if !line.isEmpty { self.text += String(repeating: "  ", count: self.depth) + line }
    self.text += "\n"
  }

  /// Adds a blank line before the next line, unless it is the first line of the file or of a block.
  mutating func separate() {
    self.needsBlankLine = !self.text.isEmpty && !self.text.hasSuffix("{\n")
  }

  // MARK: Statements

  /// The beginning of lines in braces.
  ///
  /// - Returns: The length of the text for ``close(from:)``; nil if the block has a comment.
  mutating func open(_ head: String, at location: Location?) -> Int? {
    self.leadingComments(location)
    let trailing = Self.lines(of: location?.trailingComments ?? "")
    self.append(trailing.count == 1 ? "\(head) { //\(trailing[0])" : "\(head) {")
    self.depth += 1
    if trailing.count > 1 {
      for line in trailing { self.append("//\(line)") }
      self.needsBlankLine = true
    }
    return trailing.isEmpty ? self.text.utf8.count : nil
  }

  /// The end of lines in braces.
  mutating func close(from start: Int?) {
    self.depth -= 1
    self.needsBlankLine = false
    if self.text.utf8.count == start {
      self.text.removeLast()
      self.text += "}\n"
    } else {
      self.append("}")
    }
  }

  /// A statement with the comments around it.
  mutating func statement(_ lines: [String], at location: Location?) {
    self.leadingComments(location)
    for line in lines.dropLast() { self.append(line) }
    let trailing = Self.lines(of: location?.trailingComments ?? "")
    if trailing.count == 1 {
      self.append("\(lines.last ?? "") //\(trailing[0])")
    } else {
      self.append(lines.last ?? "")
      for line in trailing { self.append("//\(line)") }
      // Without a blank line, the comment would belong to the next statement.
      if !trailing.isEmpty { self.needsBlankLine = true }
    }
  }

  // MARK: Comments

  mutating func leadingComments(_ location: Location?) {
    guard let location else { return }
    for comment in location.leadingDetachedComments {
      // Without a blank line, the comment would belong to the statement before it.
      self.needsBlankLine = !self.text.isEmpty
      for line in Self.lines(of: comment) { self.append("//\(line)") }
      self.needsBlankLine = true
    }
    for line in Self.lines(of: location.leadingComments) { self.append("//\(line)") }
  }

  private static func lines(of comment: String) -> [String] {
    guard !comment.isEmpty else { return [] }
    // Split by bytes: as characters, CR and LF would be one.
    var lines = comment.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map {
      ProtoText.comment(Substring($0.last == UInt8(ascii: "\r") ? $0.dropLast() : $0))
    }
    if lines.last?.isEmpty == true { lines.removeLast() }
    return lines
  }
}
