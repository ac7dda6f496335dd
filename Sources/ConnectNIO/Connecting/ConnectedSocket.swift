public import Connect
internal import ConnectChannels
internal import NIOCore
internal import Synchronization

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

/// A stream socket that is connected already, for ``NIOHTTPClient/Configuration/connectedSocket``: one end of a socket pair, or
/// what another process has connected and handed over.
///
/// It owns the file descriptor. The client that gets it uses it for one connection and closes it exactly once: with that
/// connection, or when the client shuts down without having used it. A socket that no client has used is closed when the
/// last reference to it goes away. Programs that the process starts do not inherit it (`FD_CLOEXEC`).
public final class ConnectedSocket: Sendable {
  /// Nil once a connection has it, or it is closed.
  private let descriptor: Mutex<CInt?>
  /// Who is at the other end.
  let peer: EndpointAddress

  /// Takes over a file descriptor: the caller must not use or close it any more. If this fails, it is still the caller's.
  ///
  /// - Throws: `ConnectError` with `invalid_argument` if it is not open, no socket of the type `SOCK_STREAM`, or not
  ///   connected.
  public init(descriptor: CInt) throws(ConnectError) {
    var type: CInt = 0
    var size = socklen_t(MemoryLayout<CInt>.size)
    guard getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) == 0 else {
      throw Self.error(descriptor, errno == EBADF ? "is not open" : "is no socket")
    }
    guard type == Self.stream else {
      throw Self.error(descriptor, "is no stream socket; make one of the type SOCK_STREAM")
    }
    guard let peer = Self.peer(of: descriptor) else {
      throw Self.error(
        descriptor,
        "is not connected; connect it first, or give the client its address as the host"
      )
    }
    // Programs that this process starts must not inherit the connection: it would outlive the client there.
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    self.peer = peer
    self.descriptor = Mutex(descriptor)
  }

  deinit { self.close() }

  /// The file descriptor, which now belongs to the caller.
  ///
  /// - Throws: ``ConnectError`` with `unavailable` if it was taken before.
  func take() throws(ConnectError) -> CInt {
    guard let descriptor = self.descriptor.withLock({ $0.take() }) else {
      var error = ConnectError.ofConnection(
        .unavailable,
        """
        the socket of the client's configuration was used for another connection or closed, and a connected socket cannot \
        be connected again: make a new client with a new socket
        """,
        isFinal: true
      )
      error.unnamed = .ended
      throw error
    }
    return descriptor
  }

  /// Closes the socket unless a connection has it.
  func close() {
    guard let descriptor = self.descriptor.withLock({ $0.take() }) else { return }
    Self.close(descriptor)
  }

  private static func close(_ descriptor: CInt) {
    #if canImport(Glibc)
    _ = Glibc.close(descriptor)
    #elseif canImport(Musl)
    _ = Musl.close(descriptor)
    #else
    _ = Darwin.close(descriptor)
    #endif
  }

  private static var stream: CInt {
    #if canImport(Glibc)
    CInt(SOCK_STREAM.rawValue)
    #else
    SOCK_STREAM
    #endif
  }

  private static func error(_ descriptor: CInt, _ problem: String) -> ConnectError {
    ConnectError(code: .invalidArgument, message: "the file descriptor \(descriptor) \(problem)").asFinal
  }
}

// MARK: - The other end

extension ConnectedSocket {
  /// Nil if the socket is not connected.
  private static func peer(of descriptor: CInt) -> EndpointAddress? {
    var storage = sockaddr_storage()
    var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let result = withUnsafeMutableBytes(of: &storage) { bytes in
      bytes.withMemoryRebound(to: sockaddr.self) { getpeername(descriptor, $0.baseAddress, &size) }
    }
    guard result == 0 else { return nil }
    return withUnsafeBytes(of: storage) { bytes in
      Self.address(UnsafeRawBufferPointer(rebasing: bytes.prefix(Int(size))), storage) ?? .unnamed
    }
  }

  private static func address(_ bytes: UnsafeRawBufferPointer, _ storage: sockaddr_storage)
    -> EndpointAddress?
  {
    switch CInt(storage.ss_family) {
    case AF_INET where bytes.count >= MemoryLayout<sockaddr_in>.size:
      return EndpointAddress(SocketAddress(bytes.loadUnaligned(as: sockaddr_in.self)))
    case AF_INET6 where bytes.count >= MemoryLayout<sockaddr_in6>.size:
      return EndpointAddress(SocketAddress(bytes.loadUnaligned(as: sockaddr_in6.self)))
    case AF_UNIX:
      guard let path = MemoryLayout<sockaddr_un>.offset(of: \.sun_path), bytes.count > path else {
        return nil
      }
      let name = bytes[path...]
      if name.first == 0 {
        return name.count > 1 ? .unixAbstract(name: String(decoding: name.dropFirst(), as: UTF8.self)) : nil
      }
      return .unix(path: String(decoding: name.prefix { $0 != 0 }, as: UTF8.self))
    #if os(Linux)
    case Self.vsockFamily where bytes.count >= 12:
      // `struct sockaddr_vm` (vsock(7)): family, a reserved field, then port and CID.
      let port = bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self)
      return .vsock(cid: bytes.loadUnaligned(fromByteOffset: 8, as: UInt32.self), port: port)
    #endif
    default:
      return nil
    }
  }

  #if os(Linux)
  /// `AF_VSOCK`, which the C library's headers of some systems do not have.
  private static let vsockFamily: CInt = 40
  #endif
}

extension EndpointAddress {
  /// The other end of a socket pair, or of a family that has no name here.
  fileprivate static var unnamed: EndpointAddress { .unix(path: "(connected socket)") }

  fileprivate init?(_ address: SocketAddress) {
    guard let ip = address.ipAddress.flatMap({ IPAddress($0) }), let port = address.port else { return nil }
    self = .ip(ip, port: port)
  }
}
