public import Connect

/// Names and values that a request carries from service to service, for people and for telemetry: W3C Baggage,
/// <https://www.w3.org/TR/baggage/>. Everybody on the way can read it; nothing secret belongs here.
///
/// ```swift
/// options.context.baggage["tenant"] = "acme"
/// ```
public struct Baggage: Sendable, Hashable {
  /// How many entries are sent and read at most; the specification requires no more. Further entries are left out.
  public static let maximumEntries = 64
  /// How many bytes of the `baggage` header are sent and read at most; the specification requires no more. Further
  /// entries are left out.
  public static let maximumHeaderBytes = 8192

  /// A name and its value. Properties of the specification are not kept.
  public struct Entry: Sendable, Hashable {
    /// The name, which is case-sensitive. Only tokens of HTTP (RFC 9110, section 5.6.2) are sent.
    public var name: String
    /// The value as text, not percent-encoded.
    public var value: String
  }

  /// In the order in which they were added.
  public private(set) var entries: [Entry] = []

  /// No entries.
  public init() {}

  /// Whether there are no entries.
  public var isEmpty: Bool { self.entries.isEmpty }

  /// The value of a name, which is case-sensitive; setting nil removes it. A name that is no token of HTTP is kept here,
  /// and not sent.
  public subscript(name: String) -> String? {
    get { self.entries.first { $0.name == name }?.value }
    set {
      guard let index = self.entries.firstIndex(where: { $0.name == name }) else {
        if let newValue { self.entries.append(Entry(name: name, value: newValue)) }
        return
      }
      if let newValue { self.entries[index].value = newValue } else { self.entries.remove(at: index) }
    }
  }
}

extension Baggage: ExpressibleByDictionaryLiteral {
  public init(dictionaryLiteral elements: (String, String)...) {
    for (name, value) in elements { self[name] = value }
  }
}

// MARK: - The header

extension Baggage {
  /// The entries in the `baggage` headers of a request. Properties of entries, and what cannot be read, are left out.
  public init(_ headers: Headers) {
    var remainingBytes = Self.maximumHeaderBytes
    for line in headers["baggage"] {
      for member in line.split(separator: ",") {
        remainingBytes -= member.utf8.count + 1
        guard remainingBytes >= -1, self.entries.count < Self.maximumEntries else { return }
        let pair = member.prefix { $0 != ";" }
        guard let equals = pair.firstIndex(of: "=") else { continue }
        let name = pair[..<equals].trimmed
        guard Self.isToken(name) else { continue }
        self[String(name)] = Self.decode(pair[pair.index(after: equals)...].trimmed)
      }
    }
  }

  /// The value of the `baggage` header; nil if there is nothing to send.
  public var headerValue: String? {
    var text = ""
    for entry in self.entries.prefix(Self.maximumEntries) where Self.isToken(entry.name) {
      let member = "\(text.isEmpty ? "" : ",")\(entry.name)=\(Self.encode(entry.value))"
      guard text.utf8.count + member.utf8.count <= Self.maximumHeaderBytes else { break }
      text += member
    }
    return text.isEmpty ? nil : text
  }

  private static func isToken(_ name: some StringProtocol) -> Bool {
    !name.isEmpty
      && name.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "a")...UInt8(ascii: "z"):
          true
        default:
          "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
      }
  }

  /// Percent-encodes what is no `baggage-octet`.
  private static func encode(_ value: String) -> String {
    var text = ""
    for byte in value.utf8 {
      switch byte {
      case UInt8(ascii: "%"), UInt8(ascii: "\""), UInt8(ascii: ","), UInt8(ascii: ";"), UInt8(ascii: "\\"),
        0...0x20, 0x7f...:
        let digits = String(byte, radix: 16, uppercase: true)
        text += "%" + (digits.count == 1 ? "0" : "") + digits
      default:
        text.unicodeScalars.append(Unicode.Scalar(byte))
      }
    }
    return text
  }

  /// Undoes percent-encoding; bytes that are no UTF-8 become U+FFFD, a `%` without two digits stays.
  private static func decode(_ value: Substring) -> String {
    guard value.utf8.contains(UInt8(ascii: "%")) else { return String(value) }
    var bytes: [UInt8] = []
    var rest = value.utf8
    while let byte = rest.popFirst() {
      let digits = rest.prefix(2)
      if byte == UInt8(ascii: "%"), digits.count == 2, digits.allSatisfy({ $0 != UInt8(ascii: "+") }),
        let decoded = UInt8(Substring(digits), radix: 16)
      {
        bytes.append(decoded)
        rest = rest.dropFirst(2)
      } else {
        bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
