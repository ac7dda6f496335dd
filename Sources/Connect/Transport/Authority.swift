internal import NIOCore

/// A host, and a port if one is given: the authority of a URL (RFC 3986, section 3.2) without user information.
package struct Authority: Sendable, Hashable {
  /// In lower case; IPv6 without brackets.
  package var host: String
  package var port: Int?

  /// What is wrong with a text, to follow its name: "has no host".
  package struct Problem: Swift.Error {
    package var text: String
  }

  static let userInformation = Problem(text: "has user information")

  static func hasUserInformation(_ text: Substring) -> Bool { text.utf8.contains(UInt8(ascii: "@")) }

  init(_ text: Substring) throws(Problem) {
    guard !Self.hasUserInformation(text) else { throw Self.userInformation }
    let (host, port) = try Self.splitPort(text)
    self.host = try Self.checkedHost(host)
    self.port = try port.map { (port) throws(Problem) in try Self.checkedPort(port) }
  }

  /// The authority that a call asks for.
  ///
  /// - Throws: ``ConnectError`` with `invalid_argument`, whose message says what to write. It does not have user
  ///   information, which may hold a password.
  package init(ofCall text: String) throws(ConnectError) {
    do throws(Problem) {
      if text.utf8.contains(where: { "/?#".utf8.contains($0) }), !Self.hasUserInformation(text[...]) {
        throw Problem(text: "has a path or a scheme")
      }
      self = try Self(text[...])
    } catch {
      let shown = Self.hasUserInformation(text[...]) ? "" : " '\(Origin.printable(text))'"
      throw ConnectError(
        code: .invalidArgument,
        message:
          "the call's authority\(shown) \(error.text); write HOST or HOST:PORT, as in api.example.com:8443"
      )
    }
  }

  /// Splits `host:port`; the host keeps its brackets.
  private static func splitPort(_ authority: Substring) throws(Problem) -> (host: Substring, port: Substring?)
  {
    let hostEnd: Substring.Index
    if authority.hasPrefix("[") {
      guard let bracket = authority.utf8.firstIndex(of: UInt8(ascii: "]")) else {
        throw Problem(text: "has a bracket that is not closed")
      }
      hostEnd = authority.utf8.index(after: bracket)
    } else {
      hostEnd = authority.utf8.firstIndex(of: UInt8(ascii: ":")) ?? authority.endIndex
    }
    guard hostEnd < authority.endIndex else { return (authority, nil) }
    guard authority.utf8[hostEnd] == UInt8(ascii: ":") else {
      throw Problem(text: "has text behind the bracket that is no port")
    }
    return (authority[..<hostEnd], authority[authority.utf8.index(after: hostEnd)...])
  }

  private static func checkedHost(_ host: Substring) throws(Problem) -> String {
    guard !host.isEmpty else { throw Problem(text: "has no host") }
    if host.hasPrefix("[") {
      let address = String(host.dropFirst().dropLast()).asciiLowercased
      guard address.utf8.contains(UInt8(ascii: ":")), self.isIPAddress(address) else {
        throw Problem(text: "has something in brackets that is no IPv6 address")
      }
      return address
    }
    guard host.utf8.allSatisfy({ $0 < 0x80 }) else {
      throw Problem(text: "has a host that is not ASCII; write its xn-- form")
    }
    guard host.utf8.allSatisfy(PercentEncoding.isUnreserved) else {
      throw Problem(text: "has a host with a character that must not be in a host name")
    }
    return String(host).asciiLowercased
  }

  private static func checkedPort(_ port: Substring) throws(Problem) -> Int {
    guard !port.isEmpty, port.utf8.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }) else {
      throw Problem(text: "has a port that is not a number")
    }
    guard let number = Int(port), (1...65_535).contains(number) else {
      throw Problem(text: "has a port that is not between 1 and 65535")
    }
    return number
  }

  private static func isIPAddress(_ text: String) -> Bool {
    // A zone (fe80::1%eth0) means something on this machine only and must not be in an authority.
    !text.utf8.contains(UInt8(ascii: "%")) && (try? SocketAddress(ipAddress: text, port: 0)) != nil
  }
}
