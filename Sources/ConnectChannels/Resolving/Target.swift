internal import Connect

/// What a channel connects to, and how its addresses are found
/// (<https://github.com/grpc/grpc/blob/master/doc/naming.md>).
///
/// | text | meaning |
/// | --- | --- |
/// | `https://host:port`, `http://host:port` | the system's resolver; port 443 or 80 by default |
/// | `dns:host:port` | the stub resolver; port 443 by default |
/// | `dns://server/host:port` | the stub resolver, which asks this name server only |
/// | `srv:_service._tcp.name` | the stub resolver; ports and weights from SRV records |
/// | `ipv4:192.0.2.1:80,192.0.2.2:80` | these addresses |
/// | `ipv6:[2001:db8::1]:80` | these addresses |
/// | `unix:/path`, `unix:///path` | a Unix domain socket |
/// | `unix-abstract:name` | a Unix domain socket in Linux's abstract namespace |
/// | `vsock:cid:port` | a virtual machine or its host |
/// | `xds:///name` | what a control plane says of the name |
/// | `xds://authority/name` | what the control plane of this authority says |
public enum Target: Hashable, Sendable {
  /// A host that the system's resolver looks up.
  ///
  /// - Parameter isSecure: Whether the scheme is `https`.
  case url(HostAndPort, isSecure: Bool)
  /// A host that the stub resolver looks up.
  ///
  /// - Parameter server: The name server to ask; nil for those of the system.
  case dns(HostAndPort, server: EndpointAddress?)
  /// A service whose servers, ports and weights are in SRV records.
  ///
  /// - Parameter name: With its labels for service and protocol, such as `_grpc._tcp.example.com`.
  case service(name: String)
  /// Known addresses, at least one.
  case addresses([EndpointAddress])
  /// A Unix domain socket.
  case unix(path: String)
  /// A Unix domain socket with a name in Linux's abstract namespace, without the NUL in front.
  case unixAbstract(name: String)
  /// A port of a virtual machine or of its host: 1 is this machine's CID, 2 the host's (vsock(7)).
  case vsock(cid: UInt32, port: UInt32)
  /// A name whose routes and servers a control plane gives (gRFC A27). The module `ConnectXDS` finds them.
  ///
  /// - Parameters:
  ///   - authority: Who is responsible for the name (gRFC A47); nil for the default of the bootstrap.
  ///   - name: The name of the service, as the control plane calls it.
  case xds(authority: String?, name: String)

  /// The port of names and addresses that come without one, as in gRPC.
  public static let defaultPort = 443
}

/// Why a text is no target, and what to write in its place.
public struct TargetError: Swift.Error, Hashable, Sendable, CustomStringConvertible {
  /// The text that is no target.
  public var target: String
  /// What is wrong with the text, and what to write in its place.
  public var problem: String

  public var description: String { "the target \"\(self.target)\" cannot be used: \(self.problem)" }
}

extension Target: CustomStringConvertible {
  /// The target in the form that ``init(_:)`` reads.
  public var description: String {
    switch self {
    case .url(let host, let isSecure): "\(isSecure ? "https" : "http")://\(host)"
    case .dns(let host, nil): "dns:\(host)"
    case .dns(let host, let server?): "dns://\(server)/\(host)"
    case .service(let name): "srv:\(name)"
    case .unix(let path): "unix:\(path)"
    case .unixAbstract(let name): "unix-abstract:\(name)"
    case .vsock(let cid, let port): "vsock:\(cid):\(port)"
    case .xds(let authority, let name): "xds://\(authority ?? "")/\(name)"
    case .addresses(let addresses):
      (addresses.first?.isIPv6 == true ? "ipv6:" : "ipv4:")
        + addresses.map(\.description).joined(separator: ",")
    }
  }
}

extension EndpointAddress {
  fileprivate var isIPv6: Bool {
    if case .ip(let address, _) = self { address.family == .v6 } else { false }
  }
}

// MARK: - Parsing

extension Target {
  private static let forms =
    "https://HOST:PORT, dns:HOST:PORT, srv:_SERVICE._tcp.NAME, ipv4:ADDRESS:PORT, "
    + "ipv6:[ADDRESS]:PORT, unix:/PATH, unix-abstract:NAME, vsock:CID:PORT, or xds:///NAME"

  /// Parses a text of one of the forms in the table above.
  ///
  /// - Throws: ``TargetError``, which says what to write.
  public init(_ text: String) throws(TargetError) {
    do throws(HostProblem) {
      self = try Self.parse(text)
    } catch {
      throw TargetError(target: text, problem: error.text)
    }
  }

  private static func parse(_ text: String) throws(HostProblem) -> Target {
    guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else {
      throw HostProblem(text: "it has no scheme; write \(self.forms)")
    }
    let rest = String(text[text.utf8.index(after: colon)...])
    let scheme = text[..<colon].lowercased()
    switch scheme {
    case "https", "http":
      return try self.url(rest, isSecure: scheme == "https")
    case "dns":
      return try self.dns(rest)
    case "srv":
      return try self.service(rest)
    case "ipv4", "ipv6":
      return try self.addresses(rest, family: scheme == "ipv4" ? .v4 : .v6)
    case "unix":
      return try self.unix(rest)
    case "unix-abstract":
      return try self.unixAbstract(rest)
    case "vsock":
      guard let port = VsockPort(rest) else { throw HostProblem(text: "write \(VsockPort.form)") }
      return .vsock(cid: port.cid, port: port.port)
    case "xds":
      return try self.xds(rest)
    default:
      throw HostProblem(text: "\"\(scheme)\" is no known scheme; write dns:\(text), or \(self.forms)")
    }
  }

  private static func url(_ rest: String, isSecure: Bool) throws(HostProblem) -> Target {
    guard rest.hasPrefix("//") else { throw HostProblem(text: "two slashes have to follow the scheme") }
    var authority = rest.dropFirst(2)
    if authority.hasSuffix("/") { authority = authority.dropLast() }
    if authority.utf8.contains(where: { "/?#".utf8.contains($0) }) {
      throw HostProblem(text: "it has a path; write only the scheme, the host and the port")
    }
    if authority.utf8.contains(UInt8(ascii: "@")) {
      throw HostProblem(text: "it has credentials; give those to the client's configuration")
    }
    return .url(try HostAndPort(parsing: authority, defaultPort: isSecure ? 443 : 80), isSecure: isSecure)
  }

  private static func dns(_ rest: String) throws(HostProblem) -> Target {
    guard rest.hasPrefix("//") else {
      return .dns(try HostAndPort(parsing: rest, defaultPort: self.defaultPort), server: nil)
    }
    let parts = rest.dropFirst(2).split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[1].isEmpty else {
      throw HostProblem(
        text: "write dns:HOST:PORT, or dns://SERVER/HOST:PORT with the address of a name server"
      )
    }
    let name = try HostAndPort(parsing: parts[1], defaultPort: self.defaultPort)
    if parts[0].isEmpty { return .dns(name, server: nil) }
    let server = try HostAndPort(parsing: parts[0], defaultPort: 53)
    guard let address = IPAddress(server.host) else {
      throw HostProblem(text: "the name server \"\(server.host)\" has to be an IP address")
    }
    return .dns(name, server: .ip(address, port: server.port))
  }

  private static func service(_ rest: String) throws(HostProblem) -> Target {
    guard !rest.utf8.contains(where: { ":/,".utf8.contains($0) }), let name = DNSName(rest),
      name.labels.count >= 3,
      name.labels.prefix(2).allSatisfy({ $0.first == UInt8(ascii: "_") && $0.count > 1 })
    else {
      throw HostProblem(
        text: "write srv:_SERVICE._tcp.NAME, without a port, as in srv:_grpc._tcp.example.com"
      )
    }
    return .service(name: rest)
  }

  private static func addresses(_ rest: String, family: IPAddress.Family) throws(HostProblem) -> Target {
    var addresses: [EndpointAddress] = []
    for text in rest.split(separator: ",", omittingEmptySubsequences: false) {
      let text = ASCII.trimmed(text)
      let parsed = try HostAndPort(parsing: text, defaultPort: self.defaultPort)
      guard let address = IPAddress(parsed.host), address.family == family else {
        let form = family == .v4 ? "ipv4:192.0.2.1:443" : "ipv6:[2001:db8::1]:443"
        throw HostProblem(
          text: "\"\(parsed.host)\" is no such address; write addresses as in \(form), or dns:NAME"
        )
      }
      addresses.append(.ip(address, port: parsed.port))
    }
    return .addresses(addresses)
  }

  private static func unix(_ rest: String) throws(HostProblem) -> Target {
    let path = rest.hasPrefix("//") ? String(rest.dropFirst(2)) : rest
    if rest.hasPrefix("//"), !path.hasPrefix("/") {
      throw HostProblem(text: "after two slashes the path has to be absolute, as in unix:///run/service.sock")
    }
    // `sun_path` has 108 bytes, one for the end.
    guard (1...107).contains(path.utf8.count), !path.utf8.contains(0) else {
      throw HostProblem(text: "the path of a socket has 1 to 107 bytes; write unix:/PATH")
    }
    return .unix(path: path)
  }

  private static func unixAbstract(_ name: String) throws(HostProblem) -> Target {
    guard (1...107).contains(name.utf8.count), !name.utf8.contains(0) else {
      throw HostProblem(
        text: "the name of a socket has 1 to 107 bytes and no NUL; write unix-abstract:NAME"
      )
    }
    return .unixAbstract(name: name)
  }

  private static func xds(_ rest: String) throws(HostProblem) -> Target {
    var authority: Substring = ""
    var name = rest[...]
    if rest.hasPrefix("//") {
      let parts = rest.dropFirst(2).split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
      authority = parts[0]
      name = parts.count == 2 ? parts[1] : ""
    } else if name.hasPrefix("/") {
      name = name.dropFirst()
    }
    let isControl = { (byte: UInt8) in byte <= 0x20 || byte == 0x7f }
    guard !name.isEmpty, !(authority + name).utf8.contains(where: isControl) else {
      throw HostProblem(
        text: "write xds:///NAME, or xds://AUTHORITY/NAME, with the name of a service and without spaces"
      )
    }
    return .xds(authority: authority.isEmpty ? nil : String(authority), name: String(name))
  }
}
