extension AltSvcField {
  /// The longest value that is read, in bytes.
  static let maximumLength = 4_096
  /// How many alternatives of a response are read.
  static let maximumCount = 16

  /// Reads the values of a response's `alt-svc` fields (RFC 7838, sections 3 and 3.1).
  ///
  /// Skips alternatives with an invalid port, or with a `ma` that is no number. Ignores unknown parameters.
  ///
  /// - Returns: Nil for values that break the syntax, that are too long, or that name no alternative: then nothing changes.
  package init?(_ values: [String]) {
    if values == ["clear"] {
      self = .clear
      return
    }
    guard values.reduce(0, { $0 + $1.utf8.count + 1 }) <= Self.maximumLength else { return nil }
    var found: [AlternativeService] = []
    for value in values {
      var reader = FieldReader(value)
      guard let alternatives = reader.alternatives() else { return nil }
      found += alternatives
    }
    guard !found.isEmpty else { return nil }
    self = .alternatives(Array(found.prefix(Self.maximumCount)))
  }
}

/// Reads the parts of a field's value one after the other. A function that returns nil has met bytes that break the syntax.
private struct FieldReader {
  private var rest: ArraySlice<UInt8>

  init(_ value: String) {
    self.rest = Array(value.utf8)[...]
  }

  /// All elements of the list; empty elements are allowed (RFC 9110, section 5.6.1.2).
  mutating func alternatives() -> [AlternativeService]? {
    var found: [AlternativeService] = []
    while true {
      self.skipSpace()
      guard let next = self.rest.first else { return found }
      if next != UInt8(ascii: ",") {
        guard let alternative = self.alternative() else { return nil }
        if case .some(let usable) = alternative { found.append(usable) }
        self.skipSpace()
      }
      guard self.rest.isEmpty || self.take(UInt8(ascii: ",")) else { return nil }
    }
  }

  /// - Returns: `.some(nil)` for an alternative that nobody can use.
  private mutating func alternative() -> AlternativeService?? {
    guard let name = self.token(), self.take(UInt8(ascii: "=")), let authority = self.quotedString() else {
      return nil
    }
    var alternative = Self.alternative(name, authority)
    while true {
      self.skipSpace()
      guard self.take(UInt8(ascii: ";")) else { return .some(alternative) }
      self.skipSpace()
      guard let parameter = self.token(), self.take(UInt8(ascii: "=")),
        let value = self.rest.first == UInt8(ascii: "\"") ? self.quotedString() : self.token()
      else { return nil }
      switch parameter.lowercased() {
      case "ma":
        // Numbers above `Int32.max` count as `Int32.max` (RFC 9111, section 1.2.2).
        guard !value.isEmpty, value.utf8.allSatisfy({ ASCII.digit($0) != nil }) else {
          alternative = nil
          continue
        }
        let seconds = ASCII.decimal(value.utf8, maximum: Int(Int32.max)) ?? Int(Int32.max)
        alternative?.maximumAge = .seconds(seconds)
      default:
        // `persist` is for alternatives at other hosts, which may be worse in another network. Such alternatives are
        // not used.
        break
      }
    }
  }

  private static func alternative(_ name: String, _ authority: String) -> AlternativeService? {
    guard let name = ASCII.percentDecoded(name), !name.isEmpty,
      let colon = authority.utf8.lastIndex(of: UInt8(ascii: ":"))
    else { return nil }
    let digits = authority[authority.utf8.index(after: colon)...].utf8
    guard digits.count <= 5, let port = ASCII.decimal(digits, maximum: 65_535), port > 0 else { return nil }
    var host = authority[..<colon]
    guard !host.isEmpty else { return AlternativeService(protocolName: name, port: port) }
    if host.hasPrefix("["), host.hasSuffix("]") {
      host = host.dropFirst().dropLast()
      guard IPAddress(host)?.family == .v6 else { return nil }
    } else if host.utf8.contains(where: { $0 <= 0x20 || $0 >= 0x7f || ":/?#[]@\"\\".utf8.contains($0) }) {
      return nil
    }
    return AlternativeService(protocolName: name, host: String(host), port: port)
  }

  // MARK: - Words

  private mutating func take(_ byte: UInt8) -> Bool {
    guard self.rest.first == byte else { return false }
    self.rest.removeFirst()
    return true
  }

  private mutating func skipSpace() {
    self.rest = self.rest.drop { $0 == 0x20 || $0 == 0x09 }
  }

  private mutating func token() -> String? {
    let token = self.rest.prefix(while: Self.isTokenByte)
    guard !token.isEmpty else { return nil }
    self.rest = self.rest[token.endIndex...]
    return String(decoding: token, as: UTF8.self)
  }

  /// The content, without the backslashes.
  private mutating func quotedString() -> String? {
    guard self.take(UInt8(ascii: "\"")) else { return nil }
    var content: [UInt8] = []
    while var byte = self.rest.popFirst() {
      if byte == UInt8(ascii: "\"") { return String(validating: content, as: UTF8.self) }
      if byte == UInt8(ascii: "\\") {
        guard let escaped = self.rest.popFirst() else { return nil }
        byte = escaped
      }
      guard byte == 0x09 || (byte >= 0x20 && byte != 0x7f) else { return nil }
      content.append(byte)
    }
    return nil
  }

  /// RFC 9110, section 5.6.2.
  private static func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default:
      "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
  }
}
