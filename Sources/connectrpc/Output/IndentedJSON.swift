import NIOCore

/// JSON with a line for each value, two spaces deeper in each object and array.
enum IndentedJSON {
  /// - Parameter json: Valid JSON without white space between its parts.
  static func text(_ json: ByteBuffer) -> String {
    var out: [UInt8] = []
    out.reserveCapacity(json.readableBytes * 2)
    var depth = 0
    var isInString = false
    var isEscaped = false
    func newLine(_ out: inout [UInt8]) {
      out.append(UInt8(ascii: "\n"))
      out.append(contentsOf: repeatElement(UInt8(ascii: " "), count: 2 * depth))
    }
    var last: UInt8 = 0
    for byte in json.readableBytesView {
      if isInString {
        out.append(byte)
        if isEscaped {
          isEscaped = false
        } else if byte == UInt8(ascii: "\\") {
          isEscaped = true
        } else if byte == UInt8(ascii: "\"") {
          isInString = false
        }
        last = byte
        continue
      }
      switch byte {
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        if last == UInt8(ascii: "{") || last == UInt8(ascii: "[") { newLine(&out) }
        out.append(byte)
        depth += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        depth -= 1
        // {} and [] stay together.
        if last != UInt8(ascii: "{"), last != UInt8(ascii: "[") { newLine(&out) }
        out.append(byte)
      case UInt8(ascii: ","):
        out.append(byte)
        newLine(&out)
      case UInt8(ascii: ":"):
        out.append(byte)
        out.append(UInt8(ascii: " "))
      case UInt8(ascii: " "), UInt8(ascii: "\n"), UInt8(ascii: "\t"), UInt8(ascii: "\r"):
        continue
      default:
        if last == UInt8(ascii: "{") || last == UInt8(ascii: "[") { newLine(&out) }
        out.append(byte)
        isInString = byte == UInt8(ascii: "\"")
      }
      last = byte
    }
    return String(decoding: out, as: UTF8.self)
  }
}
