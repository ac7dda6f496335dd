internal import Connect

/// Where a server listens: an IP address and port, a Unix domain socket, or a port of a virtual machine.
///
/// ```swift
/// EndpointAddress("10.0.0.1:80")
/// EndpointAddress("[::1]:80")
/// EndpointAddress("unix:/run/rpc")
/// EndpointAddress("unix-abstract:rpc")
/// EndpointAddress("vsock:3:50051")
/// ```
public enum EndpointAddress: Sendable, Hashable, LosslessStringConvertible {
  /// An IPv4 or IPv6 address with a port.
  ///
  /// - Parameter port: 0 to 65,535.
  case ip(IPAddress, port: Int)
  /// A Unix domain socket.
  case unix(path: String)
  /// A Unix domain socket with a name in Linux's abstract namespace.
  ///
  /// - Parameter name: 1 to 107 bytes, without the NUL that the system puts in front.
  case unixAbstract(name: String)
  /// A port of a virtual machine or of its host (vsock(7)).
  ///
  /// - Parameter cid: The machine's context identifier: 1 for this machine, 2 for the host.
  case vsock(cid: UInt32, port: UInt32)

  /// The kinds of addresses, for ``EndpointAddress/family``.
  public enum Family: Sendable, Hashable {
    /// IPv4, also where it is mapped into IPv6.
    case ipv4
    /// IPv6.
    case ipv6
    /// A Unix domain socket, with a path or a name.
    case unix
    /// A virtual machine or its host.
    case vsock
  }

  /// An address from its text; nil if `text` is not one of `IPv4:port`, `[IPv6]:port`, `unix:path`,
  /// `unix:///path`, `unix-abstract:name` and `vsock:cid:port`. Names of hosts are not addresses.
  public init?(_ text: String) {
    if text.hasPrefix("unix-abstract:") {
      let name = text.dropFirst(14)
      guard !name.isEmpty else { return nil }
      self = .unixAbstract(name: String(name))
      return
    }
    if text.hasPrefix("vsock:") {
      guard let port = VsockPort(text.dropFirst(6)) else { return nil }
      self = .vsock(cid: port.cid, port: port.port)
      return
    }
    if text.hasPrefix("unix:") {
      var path = text.dropFirst(5)
      if path.hasPrefix("//") {
        path = path.dropFirst(2)
        // What follows `unix://` is an absolute path: anything else would be the name of a host.
        guard path.hasPrefix("/") else { return nil }
      }
      guard !path.isEmpty else { return nil }
      self = .unix(path: String(path))
      return
    }
    guard let colon = text.lastIndex(of: ":") else { return nil }
    var host = text[..<colon]
    let digits = text[text.index(after: colon)...]
    guard digits.utf8.count <= 5, let port = ASCII.decimal(digits.utf8, maximum: 65_535) else { return nil }
    if host.hasPrefix("[") {
      guard host.hasSuffix("]") else { return nil }
      host = host.dropFirst().dropLast()
      guard host.contains(":") else { return nil }
    } else if host.contains(":") {
      return nil
    }
    guard let address = IPAddress(host) else { return nil }
    self = .ip(address, port: port)
  }

  /// The kind of the address. An IPv4 address that is mapped into IPv6 (`::ffff:10.0.0.1`) is an IPv4 address.
  public var family: Family {
    switch self {
    case .ip(let address, _):
      address.unmapped.family == .v6 ? .ipv6 : .ipv4
    case .unix, .unixAbstract:
      .unix
    case .vsock:
      .vsock
    }
  }

  /// For example `192.0.2.1:443`, `[2001:db8::1]:443`, `unix:/run/service.sock`, or `vsock:3:50051`.
  public var description: String {
    switch self {
    case .ip(let address, let port):
      HostAndPort(host: address.description, port: port).description
    case .unix(let path):
      "unix:\(path)"
    case .unixAbstract(let name):
      "unix-abstract:\(name)"
    case .vsock(let cid, let port):
      "vsock:\(cid):\(port)"
    }
  }
}
