internal import NIOCore

/// The text that error messages show of a body that no protocol explains: the first words of an error page.
package enum ResponseText {
  /// How many bytes of a body are looked at.
  package static let maximumBytes = 1024
  /// How many characters are shown.
  private static let maximumCharacters = 120

  /// The beginning of the body that came with `head`; empty if that is not text.
  static func excerpt(of body: ByteBuffer, _ head: HTTPResponseHead) -> String {
    guard let contentType = head.headers.first(lowercased: "content-type"),
      head.headers.first(lowercased: "content-encoding") ?? "identity" == "identity"
    else { return "" }
    let type = MediaType.essence(contentType)
    guard type.hasPrefix("text/") || type == "application/json" else { return "" }
    return self.excerpt(of: body.readableBytesView.prefix(self.maximumBytes))
  }

  /// The beginning of `bytes` as text in one line, without the tags of HTML.
  package static func excerpt(of bytes: some Collection<UInt8>) -> String {
    let text = String(decoding: bytes, as: UTF8.self)
    let isHTML = text.first { !$0.isWhitespace } == "<"
    return self.line((isHTML ? self.withoutTags(text) : text)[...])
  }

  /// `text` in one line, and cut if it is long.
  package static func line(_ text: Substring) -> String {
    let words = text.split { character in
      character.isWhitespace
        || character.unicodeScalars.contains { $0.properties.generalCategory == .control }
    }
    let line = words.joined(separator: " ")
    return line.count > self.maximumCharacters ? line.prefix(self.maximumCharacters) + "…" : line
  }

  /// Whether `text` says what web servers say to cleartext on a port for TLS: nginx, Go, Apache, Tomcat.
  package static func asksForTLS(_ text: String) -> Bool {
    let text = text.asciiLowercased
    return ["https port", "https server", "ssl-enabled", "requires tls"].contains { text.contains($0) }
  }

  private static func withoutTags(_ text: String) -> String {
    var result = ""
    var rest = text[...]
    while let start = rest.firstIndex(of: "<") {
      result += "\(rest[..<start]) "
      let tag = rest[start...].prefix(7).lowercased()
      rest = rest[start...].drop { $0 != ">" }.dropFirst()
      if tag.hasPrefix("<style") || tag == "<script" { rest = rest.drop { $0 != "<" } }
    }
    return result + rest
  }
}
