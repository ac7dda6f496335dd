/// The value of a `content-type` without its parameters, for comparison.
enum MediaType {
  /// What comes before a `;`, without the spaces around it, in lower case.
  static func essence(_ contentType: String) -> String {
    let type = contentType.utf8.prefix { $0 != UInt8(ascii: ";") }
    let isSpace: (UInt8) -> Bool = { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
    let start = type.drop(while: isSpace)
    let end = start.lastIndex { !isSpace($0) }.map { start.index(after: $0) } ?? start.startIndex
    return String(Substring(start[start.startIndex..<end])).asciiLowercased
  }

  /// Whether both name the same type, whatever their parameters.
  static func matches(_ contentType: String, _ other: String) -> Bool {
    contentType == other || self.essence(contentType) == self.essence(other)
  }
}
