/// Adds line breaks and indentation to JSON.
package enum PrettyJSON {
  /// - Parameter json: JSON without whitespace between its tokens.
  package static func indented(_ json: String) -> String {
    var bytes: [UInt8] = []
    var depth = 0
    var isInText = false
    var isEscaped = false
    var previous: UInt8 = 0
    func newLine() {
      bytes.append(UInt8(ascii: "\n"))
      bytes += Array(repeating: UInt8(ascii: " "), count: 2 * max(0, depth))
    }
    for byte in json.utf8 {
      if isInText {
        bytes.append(byte)
        isInText = isEscaped || byte != UInt8(ascii: "\"")
        isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
        previous = byte
        continue
      }
      let isClosing = byte == UInt8(ascii: "}") || byte == UInt8(ascii: "]")
      let isOpened = previous == UInt8(ascii: "{") || previous == UInt8(ascii: "[")
      if isClosing { depth -= 1 }
      if isOpened != isClosing { newLine() }
      bytes.append(byte)
      switch byte {
      case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: ","): newLine()
      case UInt8(ascii: ":"): bytes.append(UInt8(ascii: " "))
      case UInt8(ascii: "\""): isInText = true
      default: break
      }
      previous = byte
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
