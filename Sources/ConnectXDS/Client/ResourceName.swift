internal import Connect

/// The name of a resource. Names with `xdstp:` have an authority (gRFC A47), and are in their normal form, so that equal
/// resources have equal names.
struct ResourceName: Sendable, Hashable {
  /// Why a text names no resource.
  struct Problem: Error, Hashable {
    var text: String
  }

  /// Who is responsible for the resource; nil for names of the old style.
  let authority: String?
  /// As requests and responses have it.
  let text: String

  private static let scheme = "xdstp:"

  /// Reads a name.
  ///
  /// - Throws: ``Problem`` if an `xdstp` name is no URI, or names another type.
  init(_ text: String, of type: ResourceType) throws(Problem) {
    guard text.hasPrefix(Self.scheme) else {
      self.authority = nil
      self.text = text
      return
    }
    var rest = text.dropFirst(Self.scheme.count).utf8
    guard rest.starts(with: "//".utf8) else {
      throw Problem(text: "has no authority; write xdstp://AUTHORITY/\(type.messageName)/NAME")
    }
    rest = rest.dropFirst(2)
    // A fragment is no part of the name.
    rest = rest.prefix { $0 != UInt8(ascii: "#") }
    let beforeQuery = rest.prefix { $0 != UInt8(ascii: "?") }
    let query = rest[beforeQuery.endIndex...].dropFirst()
    let authority = beforeQuery.prefix { $0 != UInt8(ascii: "/") }
    let path = beforeQuery[authority.endIndex...].dropFirst()
    let typeName = path.prefix { $0 != UInt8(ascii: "/") }
    guard typeName.elementsEqual(type.messageName.utf8) else {
      throw Problem(
        text: "names the type \(String(decoding: typeName, as: UTF8.self)), not \(type.messageName)"
      )
    }
    let id = path[typeName.endIndex...].dropFirst()
    let name = try Self.decoded(authority)
    self.authority = name
    self.text =
      "\(Self.scheme)//\(Self.encoded(name))/\(type.messageName)/\(Self.encoded(try Self.decoded(id)))"
      + (try Self.context(query))
  }

  /// The parameters in the order of their names, with the question mark; empty for none.
  private static func context(_ query: Substring.UTF8View.SubSequence) throws(Problem) -> String {
    var parameters: [String: String] = [:]
    for part in query.split(separator: UInt8(ascii: "&")) {
      let key = part.prefix { $0 != UInt8(ascii: "=") }
      guard !key.isEmpty else { continue }
      parameters[try Self.decoded(key)] = try Self.decoded(part[key.endIndex...].dropFirst())
    }
    guard !parameters.isEmpty else { return "" }
    let sorted = parameters.sorted { $0.key < $1.key }
    return "?"
      + sorted.map { "\(Self.encoded($0.key, isQuery: true))=\(Self.encoded($0.value, isQuery: true))" }
      .joined(separator: "&")
  }

  // MARK: - Percent encoding (RFC 3986, section 2)

  private static func decoded(_ bytes: Substring.UTF8View.SubSequence) throws(Problem) -> String {
    var result: [UInt8] = []
    var rest = bytes
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        guard byte > 0x20, byte < 0x7f else { throw Problem(text: "has a character that no URI has") }
        result.append(byte)
        continue
      }
      guard let high = rest.popFirst().flatMap(Self.digit), let low = rest.popFirst().flatMap(Self.digit)
      else {
        throw Problem(text: "has a '%' without two hexadecimal digits")
      }
      result.append(high << 4 | low)
    }
    guard let text = String(validating: result, as: UTF8.self) else {
      throw Problem(text: "is no UTF-8 behind its percent encoding")
    }
    return text
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }

  private static let alphanumeric = Set(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8
  )
  private static let plain = alphanumeric.union("-._~!$&'()*+,;=:@/".utf8)
  private static let plainInQuery = alphanumeric.union("-._~!$'()*+,;:@/?".utf8)
  private static let digits = Array("0123456789ABCDEF".utf8)

  private static func encoded(_ text: String, isQuery: Bool = false) -> String {
    let plain = isQuery ? self.plainInQuery : self.plain
    var result: [UInt8] = []
    for byte in text.utf8 {
      if plain.contains(byte) {
        result.append(byte)
      } else {
        result += [UInt8(ascii: "%"), self.digits[Int(byte >> 4)], self.digits[Int(byte & 15)]]
      }
    }
    return String(decoding: result, as: UTF8.self)
  }
}

extension ResourceName: Comparable {
  static func < (left: ResourceName, right: ResourceName) -> Bool { left.text < right.text }
}
