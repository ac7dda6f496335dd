/// A host name or an IP address, with a port.
public struct HostAndPort: Hashable, Sendable {
  /// A name or an IP address; IPv6 without brackets.
  public var host: String
  /// The port, 1 to 65,535. It is not checked here.
  public var port: Int

  /// A host with a port. Neither is checked.
  public init(host: String, port: Int) {
    self.host = host
    self.port = port
  }
}

extension HostAndPort: CustomStringConvertible {
  /// `host:port`, with IPv6 addresses in brackets.
  public var description: String {
    self.host.utf8.contains(UInt8(ascii: ":")) ? "[\(self.host)]:\(self.port)" : "\(self.host):\(self.port)"
  }
}

extension HostAndPort {
  /// A host name in lower case without the dot at its end, so that equal names have equal text.
  static func canonicalName(_ name: String) -> String {
    let name = name.lowercased()
    return name.hasSuffix(".") ? String(name.dropLast()) : name
  }
}

/// What is wrong with a host or a port, and what to write in its place. The caller adds the whole text.
package struct HostProblem: Swift.Error, Hashable {
  package var text: String

  package init(text: String) {
    self.text = text
  }
}

extension HostAndPort {
  /// Parses `host`, `host:port`, `[IPv6]`, `[IPv6]:port` and a bare IPv6 address.
  ///
  /// - Parameter defaultPort: The port where the text has none; nil if the text needs one.
  init(parsing text: some StringProtocol, defaultPort: Int?) throws(HostProblem) {
    let (host, port) = try Self.split(String(text))
    guard let port else {
      guard let defaultPort else { throw HostProblem(text: "the port is missing; write \(host):PORT") }
      self.init(host: host, port: defaultPort)
      return
    }
    guard let number = ASCII.decimal(port.utf8, maximum: 65_535), number > 0 else {
      throw HostProblem(text: "the port \"\(port)\" is not a number from 1 to 65535")
    }
    self.init(host: host, port: number)
  }

  private static func split(_ text: String) throws(HostProblem) -> (host: String, port: String?) {
    if text.utf8.first == UInt8(ascii: "[") {
      let parts = text.dropFirst().split(separator: "]", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, let address = IPAddress(parts[0]), address.family == .v6 else {
        throw HostProblem(text: "the brackets have to enclose an IPv6 address, as in [::1]:443")
      }
      if parts[1].isEmpty { return (address.description, nil) }
      guard parts[1].utf8.first == UInt8(ascii: ":") else {
        throw HostProblem(text: "after the brackets may only come a colon and the port, as in [::1]:443")
      }
      return (address.description, String(parts[1].dropFirst()))
    }
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    switch parts.count {
    case 1:
      return (try self.checked(text), nil)
    case 2:
      return (try self.checked(String(parts[0])), String(parts[1]))
    default:
      guard let address = IPAddress(text) else {
        throw HostProblem(
          text: "there are too many colons; put an IPv6 address into brackets, as in [::1]:443"
        )
      }
      return (address.description, nil)
    }
  }

  /// Refuses bytes that would end the host early in a request or a DNS query.
  private static func checked(_ host: String) throws(HostProblem) -> String {
    guard !host.isEmpty else { throw HostProblem(text: "the host is missing; write HOST:PORT") }
    for byte in host.utf8 where byte <= 0x20 || byte >= 0x7f || "/\\@?#[]\"%,".utf8.contains(byte) {
      if byte >= 0x80 {
        throw HostProblem(text: "the host \"\(host)\" is not ASCII; write it in Punycode (xn--…)")
      }
      throw HostProblem(text: "the host \"\(host)\" has a character that no host name has")
    }
    return host
  }
}
