internal import Connect

/// The directives of a `cache-control` header that concern a cache like ours, <https://www.rfc-editor.org/rfc/rfc9111>.
///
/// A directive that is limited to some header fields counts for the whole response. A time that is no number counts as
/// zero. So a mistake never makes anything live longer.
struct CacheControl: Sendable {
  private(set) var noStore = false
  private(set) var noCache = false
  private(set) var isPrivate = false
  private(set) var mustRevalidate = false
  private(set) var maxAge: Duration?
  private(set) var staleIfError: Duration?

  init(_ headers: Headers) {
    for field in headers where field.name == "cache-control" {
      for directive in Self.split(field.value) { self.apply(directive) }
    }
  }

  private mutating func apply(_ directive: Substring) {
    let parts = directive.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let value = parts.count > 1 ? parts[1].trimmed : ""
    switch parts[0].trimmed.lowercased() {
    case "no-store": self.noStore = true
    case "no-cache": self.noCache = true
    case "private": self.isPrivate = true
    case "must-revalidate": self.mustRevalidate = true
    case "max-age": self.maxAge = min(self.maxAge ?? .seconds(Int64.max), Self.seconds(value))
    case "stale-if-error": self.staleIfError = Self.seconds(value)
    default: break
    }
  }

  /// Splits at the commas outside of quotes.
  private static func split(_ value: String) -> [Substring] {
    var isQuoted = false
    return value.split { character in
      if character == "\"" { isQuoted.toggle() }
      return character == "," && !isQuoted
    }
  }

  /// Zero if `text` is no number; a number that is too large is clamped.
  private static func seconds(_ text: Substring) -> Duration {
    let digits = text.hasPrefix("\"") ? text.dropFirst().prefix { $0 != "\"" } : text
    guard !digits.isEmpty, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return .zero }
    return Duration.seconds(Int64(digits) ?? .max).clamped
  }
}

extension Substring {
  /// Without spaces and tabs at either end.
  var trimmed: Substring {
    let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" }
    var text = self.drop(while: isSpace)
    while let last = text.last, isSpace(last) { text.removeLast() }
    return text
  }
}
