package import ConnectChannels
package import NIOCore

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

extension SocketAddress {
  /// The longest path of a Unix domain socket, in bytes: what Linux's `sun_path` holds in front of its terminator.
  static let longestPath = 107

  /// For TCP, UDP and Unix domain sockets with a path. Other addresses are no addresses for NIO.
  ///
  /// - Throws: If it is an address of another kind, the port is out of range, the path is too long, or the interface of a link-local address does not
  ///   exist.
  package init(_ address: EndpointAddress) throws {
    switch address {
    case .unix(let path):
      self.init(try Self.unixAddress(path))
    case .unixAbstract, .vsock:
      throw UnusableAddress(address: address)
    case .ip(let ip, let port):
      guard (0...65_535).contains(port) else { throw UnusablePort(port: port) }
      try self.init(ipAddress: ip.description, port: port)
    }
  }

  /// NIO's own function takes 103 bytes at most, the limit of other systems.
  private static func unixAddress(_ path: String) throws -> sockaddr_un {
    guard (1...self.longestPath).contains(path.utf8.count), !path.utf8.contains(0) else {
      throw UnusablePath(count: path.utf8.count)
    }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    return address
  }

  private struct UnusableAddress: Swift.Error, CustomStringConvertible {
    var address: EndpointAddress
    var description: String { "\(self.address) is no address of UDP: write an IP address and a port" }
  }

  private struct UnusablePort: Swift.Error, CustomStringConvertible {
    var port: Int
    var description: String { "\(self.port) is no port" }
  }

  private struct UnusablePath: Swift.Error, CustomStringConvertible {
    var count: Int
    var description: String {
      "the path of a Unix domain socket has 1 to \(SocketAddress.longestPath) bytes and no NUL, not \(self.count) bytes"
    }
  }
}
