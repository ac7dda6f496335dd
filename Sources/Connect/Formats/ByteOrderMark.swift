/// The byte order mark of UTF-8, which some editors put in front of a text. It means nothing there, and most programs
/// skip it.
package enum ByteOrderMark {
  private static let bytes: [UInt8] = [0xef, 0xbb, 0xbf]

  /// A text without the marks at the beginning of its lines: where files were appended to one another, each may have one.
  package static func removed(from text: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    var rest = text[...]
    var start = text.startIndex
    while let index = text[start...].firstIndex(of: self.bytes[0]) {
      start = index + 1
      let isLineStart = index == text.startIndex || text[index - 1] == 0x0a || text[index - 1] == 0x0d
      guard isLineStart, text[index...].starts(with: self.bytes) else { continue }
      result += rest[..<index]
      start = index + self.bytes.count
      rest = text[start...]
    }
    return rest.count == text.count ? text : result + rest
  }

  /// Whether a text begins with a mark of UTF-16.
  package static func saysUTF16(_ text: [UInt8]) -> Bool {
    text.starts(with: [0xff, 0xfe]) || text.starts(with: [0xfe, 0xff])
  }
}
