/// Makes text from a peer fit for logs, terminals, and the headers of other requests: without control characters.
///
/// Each control character (Unicode's general category Cc: U+0000 to U+001F, and U+007F to U+009F) becomes U+FFFD.
package enum PeerText {
  /// A text for people. It may have several lines: tab, line feed and carriage return stay. gRPC's interoperability test
  /// `special_status_message` demands that they arrive.
  package static func message(_ text: String) -> String {
    self.printable(text) { $0 == "\t" || $0 == "\n" || $0 == "\r" }
  }

  /// The value of a field. The tab stays, as HTTP allows it (RFC 9110, section 5.5).
  package static func value(_ text: String) -> String { self.printable(text) { $0 == "\t" } }

  @inline(__always)
  private static func printable(_ text: String, _ mayStay: (Unicode.Scalar) -> Bool) -> String {
    var text = text
    // Those above U+007F begin with this byte.
    let mayHaveControls = text.withUTF8 { bytes in
      bytes.hasByte { ByteTest($0 < 0x20) | ByteTest($0 == 0x7f) | ByteTest($0 == 0xc2) }
    }
    guard mayHaveControls else { return text }
    return String(
      String.UnicodeScalarView(
        text.unicodeScalars.map { scalar in
          let isControl = scalar.value < 0x20 || (0x7f...0x9f).contains(scalar.value)
          return isControl && !mayStay(scalar) ? "\u{fffd}" : scalar
        }
      )
    )
  }
}
