package import NIOCore

/// A peer's address as text.
package enum RemoteAddress {
  /// `address:port`, `[address]:port`, or the path of a Unix domain socket.
  package static func text(_ address: SocketAddress) -> String? {
    switch address {
    case .v4:
      guard let ip = address.ipAddress, let port = address.port else { return nil }
      return "\(ip):\(port)"
    case .v6:
      guard let ip = address.ipAddress, let port = address.port else { return nil }
      return "[\(ip)]:\(port)"
    case .unixDomainSocket:
      // The other end of a socket pair has no path.
      return address.pathname.flatMap { $0.isEmpty ? nil : $0 }
    }
  }
}
