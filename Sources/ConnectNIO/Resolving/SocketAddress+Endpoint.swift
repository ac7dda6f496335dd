package import ConnectChannels
package import NIOCore

extension SocketAddress {
  /// - Throws: If the port is out of range, the path is too long, or the interface of a link-local address does not
  ///   exist.
  package init(_ address: EndpointAddress) throws {
    switch address {
    case .unix(let path):
      try self.init(unixDomainSocketPath: path)
    case .ip(let ip, let port):
      guard (0...65_535).contains(port) else { throw UnusablePort(port: port) }
      try self.init(ipAddress: ip.description, port: port)
    }
  }

  private struct UnusablePort: Swift.Error, CustomStringConvertible {
    var port: Int
    var description: String { "\(self.port) is no port" }
  }
}
