internal import Connect
internal import NIOCore

extension Origin {
  /// Whether its parts are those of an address that this system can connect to.
  ///
  /// - Throws: ``ConnectError`` with `invalid_argument`.
  func checkAddress() throws(ConnectError) {
    switch self.scheme {
    case .http, .https:
      guard !self.host.isEmpty, !self.host.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7f }) else {
        throw ConnectError(code: .invalidArgument, message: "'\(self.host)' is not the name of a host")
      }
      guard (1...65_535).contains(self.port) else {
        throw ConnectError(code: .invalidArgument, message: "\(self.port) is not a TCP port")
      }
    case .unix:
      // `sockaddr_un` holds 107 bytes and a NUL.
      guard (1...SocketAddress.longestPath).contains(self.host.utf8.count), !self.host.utf8.contains(0) else {
        throw ConnectError(
          code: .invalidArgument,
          message: "the path of a Unix domain socket has 1 to 107 bytes, not \(self.host.utf8.count)"
        )
      }
    case .unixAbstract:
      #if os(Linux)
      guard (1...SocketAddress.longestPath).contains(self.host.utf8.count), !self.host.utf8.contains(0) else {
        throw ConnectError(
          code: .invalidArgument,
          message: """
            the name of an abstract Unix domain socket has 1 to 107 bytes and no NUL, not \(self.host.utf8.count) bytes
            """
        )
      }
      #else
      throw .noAbstractSockets
      #endif
    case .vsock:
      #if os(Linux) || canImport(Darwin)
      guard self.vsockPort != nil else {
        throw ConnectError(
          code: .invalidArgument,
          message: "'\(self)' is no address of a virtual machine; write \(VsockPort.form)"
        )
      }
      #else
      throw ConnectError(
        code: .invalidArgument,
        message: "vsock: does not exist on this system; give the server a TCP port and write http://HOST:PORT"
      ).asFinal
      #endif
    }
  }
}
