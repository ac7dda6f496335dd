/// Servers that are connected to without a proxy: the value of `no_proxy`.
///
/// Entries are separated by commas or white space, and are one of these:
///
/// | entry | matches |
/// | --- | --- |
/// | `*` | every server |
/// | `example.com` | the name, and all names below |
/// | `.example.com`, `*.example.com` | only the names below |
/// | `192.0.2.1`, `2001:db8::1`, `[2001:db8::1]` | the address |
/// | `192.0.2.0/24`, `2001:db8::/32` | the addresses of the range |
/// | one of the names and addresses with `:port` | the same, on this port only |
///
/// Addresses are compared with what the target says, not with what a name resolves to.
public struct NoProxyList: Hashable, Sendable {
  private enum Pattern: Hashable {
    case all
    case name(String, isSuffixOnly: Bool)
    case network(IPNetwork)
  }

  private struct Entry: Hashable {
    var pattern: Pattern
    var port: Int?
  }

  private let entries: [Entry]

  /// Parses the value of `no_proxy`; an empty one has no entries.
  ///
  /// - Parameter text: Entries that cannot be read match nothing.
  public init(_ text: String = "") {
    let words = Array(text.utf8).split { $0 == UInt8(ascii: ",") || ASCII.isSpace($0) }
    self.entries = words.compactMap { Self.entry(String(decoding: $0, as: UTF8.self)) }
  }

  private static func entry(_ text: String) -> Entry? {
    if text == "*" { return Entry(pattern: .all) }
    if let network = IPNetwork(text) { return Entry(pattern: .network(network)) }
    if let network = IPAddress(text).flatMap({ IPNetwork($0, prefixLength: $0.family.bitCount) }) {
      return Entry(pattern: .network(network))
    }
    var name = text
    var port: Int?
    if text.hasPrefix("[") || text.utf8.contains(UInt8(ascii: ":")) {
      // Zero stands for no port: no server listens there.
      guard let parsed = try? HostAndPort(parsing: text, defaultPort: 0) else { return nil }
      (name, port) = (parsed.host, parsed.port == 0 ? nil : parsed.port)
      if let network = IPAddress(name).flatMap({ IPNetwork($0, prefixLength: $0.family.bitCount) }) {
        return Entry(pattern: .network(network), port: port)
      }
      if name == "*" { return Entry(pattern: .all, port: port) }
    }
    if name.hasPrefix("*.") { name.removeFirst() }
    let isSuffixOnly = name.hasPrefix(".")
    if isSuffixOnly { name.removeFirst() }
    name = HostAndPort.canonicalName(name)
    return name.isEmpty ? nil : Entry(pattern: .name(name, isSuffixOnly: isSuffixOnly), port: port)
  }

  /// Whether a server is connected to without a proxy.
  ///
  /// - Parameters:
  ///   - host: A name or an IP address, IPv6 without brackets.
  ///   - port: The server's port. Only entries with a port compare it.
  public func contains(host: String, port: Int) -> Bool {
    let address = IPAddress(host)
    let name = HostAndPort.canonicalName(host)
    return self.entries.contains { entry in
      if let wanted = entry.port, wanted != port { return false }
      switch entry.pattern {
      case .all:
        return true
      case .network(let network):
        return address.map(network.contains) ?? false
      case .name(let pattern, let isSuffixOnly):
        guard address == nil else { return false }
        if name == pattern { return !isSuffixOnly }
        return name.hasSuffix("." + pattern)
      }
    }
  }
}
