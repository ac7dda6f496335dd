/// A domain name as a list of labels. Upper and lower case are the same (RFC 1035, section 2.3.3).
///
/// A label may hold any bytes: a name from the network can have dots within a label. ``description`` escapes
/// them, so that it never looks like another name.
package struct DNSName: Hashable, Sendable {
  /// In lower case; none for the root.
  let labels: [[UInt8]]

  /// The longest name, in bytes on the wire (RFC 1035, section 2.3.4).
  static let maximumLength = 255
  static let maximumLabelLength = 63

  /// - Returns: Nil if a label is empty or too long, or the name is too long.
  init?(labels: [[UInt8]]) {
    let length = labels.reduce(1) { $0 + 1 + $1.count }
    guard length <= Self.maximumLength,
      labels.allSatisfy({ (1...Self.maximumLabelLength).contains($0.count) })
    else { return nil }
    self.labels = labels.map { $0.map(ASCII.lowercased) }
  }

  /// A name from text, with or without a dot at the end.
  ///
  /// - Returns: Nil for an empty name, labels or a name that are too long, white space, escapes, and other
  ///   bytes than ASCII. Internationalised names have to be in Punycode.
  package init?(_ text: some StringProtocol) {
    var bytes = Array(text.utf8)[...]
    if bytes.last == UInt8(ascii: ".") { bytes = bytes.dropLast() }
    guard !bytes.isEmpty, bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7f && $0 != UInt8(ascii: "\\") }) else {
      return nil
    }
    self.init(
      labels: bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).map(Array.init)
    )
  }

  static let root = DNSName(checked: [])

  private init(checked labels: [[UInt8]]) {
    self.labels = labels
  }

  /// The name with another one behind it; nil if that is too long.
  func appending(_ suffix: DNSName) -> DNSName? {
    DNSName(labels: self.labels + suffix.labels)
  }
}

extension DNSName: CustomStringConvertible {
  /// The name without a dot at the end; `.` for the root. Unusual bytes are escaped as `\DDD` (RFC 1035,
  /// section 5.1).
  package var description: String {
    guard !self.labels.isEmpty else { return "." }
    return self.labels.map { label in
      label.reduce(into: "") { text, byte in
        if byte > 0x20, byte < 0x7f, byte != UInt8(ascii: "."), byte != UInt8(ascii: "\\") {
          text.unicodeScalars.append(Unicode.Scalar(byte))
        } else {
          let digits = String(byte)
          text += "\\" + String(repeating: "0", count: 3 - digits.utf8.count) + digits
        }
      }
    }.joined(separator: ".")
  }
}
