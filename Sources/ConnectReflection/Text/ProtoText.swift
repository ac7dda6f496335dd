/// The lexical rules of proto files.
enum ProtoText {
  static func isIdentifier(_ name: String) -> Bool {
    guard let first = name.utf8.first, !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first) else {
      return false
    }
    return name.utf8.allSatisfy(self.isOfIdentifier)
  }

  private static func isOfIdentifier(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
      true
    default: false
    }
  }

  /// A type name from a descriptor, without the leading dot that marks a full name.
  static func withoutDot(_ name: String) -> String { name.hasPrefix(".") ? String(name.dropFirst()) : name }

  static func lastPart(_ name: String) -> Substring { name.split(separator: ".").last ?? "" }

  /// A string literal. Text of other scripts is not escaped.
  static func quoted(_ text: String) -> String {
    var quoted = "\""
    for scalar in text.unicodeScalars { self.append(scalar, to: &quoted) }
    return quoted + "\""
  }

  private static func append(_ scalar: Unicode.Scalar, to text: inout String) {
    switch scalar {
    case "\"": text += "\\\""
    case "\\": text += "\\\\"
    case "\n": text += "\\n"
    case "\r": text += "\\r"
    case "\t": text += "\\t"
    default:
      if self.isControl(scalar) {
        for byte in UTF8.encode(scalar) ?? .init() { text += self.octal(byte) }
      } else {
        text.unicodeScalars.append(scalar)
      }
    }
  }

  /// A bytes literal.
  static func quoted(_ bytes: some Sequence<UInt8>) -> String {
    var quoted = "\""
    for byte in bytes {
      if byte < 0x80 {
        self.append(Unicode.Scalar(byte), to: &quoted)
      } else {
        quoted += self.octal(byte)
      }
    }
    return quoted + "\""
  }

  /// A literal from escaped text, such as the default values of bytes in descriptors.
  static func quotedEscaped(_ text: String) -> String {
    var quoted = "\""
    var isEscaped = false
    for scalar in text.unicodeScalars {
      if isEscaped || scalar == "\\", !self.isControl(scalar) {
        quoted.unicodeScalars.append(scalar)
        isEscaped = !isEscaped
      } else {
        self.append(scalar, to: &quoted)
        isEscaped = false
      }
    }
    return quoted + (isEscaped ? "\\\"" : "\"")
  }

  /// Reserved numbers of fields, or those of extensions.
  static func range(ofFields start: Int32, upTo end: Int32) -> String {
    let endOfFieldNumbers: Int32 = 536_870_912
    return self.range(ofValues: start, to: end >= endOfFieldNumbers ? .max : end &- 1)
  }

  /// Reserved numbers of enum values. Unlike in messages, the end is part of the range.
  static func range(ofValues start: Int32, to end: Int32) -> String {
    if end == .max { return "\(start) to max" }
    return start == end ? "\(start)" : "\(start) to \(end)"
  }

  private static func octal(_ byte: UInt8) -> String {
    let digits = String(byte, radix: 8)
    return "\\" + String(repeating: "0", count: 3 - digits.count) + digits
  }

  /// Control characters, which a terminal may interpret as commands.
  private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
    scalar.value < 0x20 || (0x7f...0x9f).contains(scalar.value)
  }

  /// A line of a comment, made safe whatever text the server sent.
  static func comment(_ line: some StringProtocol) -> String {
    guard line.unicodeScalars.contains(where: { $0 != "\t" && self.isControl($0) }) else {
      return String(line)
    }
    var text = ""
    text.unicodeScalars.append(
      contentsOf: line.unicodeScalars.map { $0 != "\t" && self.isControl($0) ? "\u{fffd}" : $0 }
    )
    return text
  }

  /// The default JSON name of a field.
  static func jsonName(of name: String) -> String {
    var json: [UInt8] = []
    var isUpper = false
    for byte in name.utf8 {
      if byte == UInt8(ascii: "_") {
        isUpper = true
        continue
      }
      let isLowerCase = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
      json.append(isUpper && isLowerCase ? byte - 0x20 : byte)
      isUpper = false
    }
    return String(decoding: json, as: UTF8.self)
  }
}
