internal import Connect

/// A `Set-Cookie` header as a server sends it: RFC 6265, section 5.2.
struct SetCookie {
  /// The sum of the lengths of the name, the value and the attributes: RFC 6265, section 6.1.
  static let maximumSize = 4096

  let name: String
  let value: String
  /// When the cookie expires, since 1970-01-01 00:00 UTC. Nil if it lasts as long as the jar.
  private(set) var expiry: Duration?
  /// In lower case and without a dot in front; nil for the host of the request alone.
  private(set) var domain: String?
  /// Begins with a slash; nil for the path of the request.
  private(set) var path: String?
  private(set) var isSecure = false

  /// Nil if the header is no cookie, or one that is too large.
  init?(_ text: String, now: Duration) {
    let bytes = text.utf8
    // The separators, which do not count, take less than half.
    guard bytes.count <= Self.maximumSize * 2 else { return nil }
    // A control character could not be sent back.
    guard bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7f || $0 == UInt8(ascii: "\t") }) else {
      return nil
    }
    let parts = bytes.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
    guard let pair = parts.first, pair.contains(UInt8(ascii: "=")) else { return nil }
    let (name, value) = Self.split(pair)
    guard !name.isEmpty else { return nil }
    self.name = String(name)
    self.value = String(value)
    var size = name.utf8.count + value.utf8.count
    var maximumAge: Duration?
    for part in parts.dropFirst() {
      let (name, value) = Self.split(part)
      size += name.utf8.count + value.utf8.count
      switch name.lowercased() {
      case "expires":
        if let seconds = CookieDate.seconds(value.utf8) { self.expiry = .seconds(seconds) }
      case "max-age":
        if let age = Self.age(value) { maximumAge = age }
      case "domain":
        let domain = value.hasPrefix(".") ? value.dropFirst() : value
        if !value.isEmpty { self.domain = domain.isEmpty ? nil : domain.lowercased() }
      case "path":
        self.path = value.hasPrefix("/") ? String(value) : nil
      case "secure":
        self.isSecure = true
      default:
        break
      }
    }
    guard size <= Self.maximumSize else { return nil }
    if let maximumAge { self.expiry = now + maximumAge }
  }

  /// A name and a value without white space around them; the value is empty if there is no `=`.
  private static func split(_ part: Substring.UTF8View) -> (name: Substring, value: Substring) {
    let equals = part.firstIndex(of: UInt8(ascii: "="))
    let value = equals.map { part[part.index(after: $0)...] } ?? part[part.endIndex...]
    return (self.trimmed(part[..<(equals ?? part.endIndex)]), self.trimmed(value))
  }

  private static func trimmed(_ text: Substring.UTF8View) -> Substring {
    func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
    let start = text.drop(while: isSpace)
    guard let last = start.lastIndex(where: { !isSpace($0) }) else {
      return Substring(text[text.endIndex...])
    }
    return Substring(start[...last])
  }

  /// The value of `Max-Age`, at most 100 years. Nil if it is to be ignored.
  private static func age(_ text: Substring) -> Duration? {
    let digits = text.hasPrefix("-") ? text.dropFirst() : text
    guard !digits.isEmpty,
      digits.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
    else { return nil }
    if text.hasPrefix("-") { return .zero }
    return Duration.seconds(Int64(digits) ?? .max).clamped
  }
}
