internal import Connect
internal import ConnectChannels
internal import NIOCore
internal import NIOPosix

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// Makes the socket of a connection, and its channel: TCP, a Unix domain socket with a path or a name, vsock, or a socket
/// that is connected already.
struct Dialer: Sendable {
  let eventLoop: any EventLoop
  /// Taken in place of connecting to an address.
  let connectedSocket: ConnectedSocket?

  /// - Parameters:
  ///   - readSize: The largest read, in bytes.
  ///   - isWanted: Asked on the event loop just before a connected socket is taken, which can be done once. If the attempt
  ///     has been given up, the socket is left for another one.
  ///   - opened: Called with the channel before it is connected.
  /// - Returns: A future that is never complete yet.
  /// - Throws: If the address is none.
  func dial(
    _ address: EndpointAddress,
    timeout: TimeAmount,
    readSize: Int,
    isWanted: @escaping @Sendable () -> Bool,
    _ opened: @escaping @Sendable (any Channel) -> Void
  ) throws -> EventLoopFuture<any Channel> {
    if let socket = self.connectedSocket {
      return self.eventLoop.flatSubmit {
        self.adopt(timeout, readSize, opened) {
          guard isWanted() else { throw CancellationError() }
          return try socket.take()
        }
      }
    }
    switch address {
    case .ip, .unix:
      return self.bootstrap(timeout, readSize, opened).connect(to: try SocketAddress(address))
    case .unixAbstract(let name):
      let address = try AbstractSocketAddress(name)
      return self.eventLoop.flatSubmit {
        self.adopt(timeout, readSize, opened) { try address.connect() }
      }
    case .vsock(let cid, let port):
      return self.bootstrap(timeout, readSize, opened).connect(
        to: VsockAddress(cid: .init(rawValue: cid), port: .init(rawValue: port))
      )
    }
  }

  private func adopt(
    _ timeout: TimeAmount,
    _ readSize: Int,
    _ opened: @escaping @Sendable (any Channel) -> Void,
    _ socket: () throws -> CInt
  ) -> EventLoopFuture<any Channel> {
    do {
      return self.bootstrap(timeout, readSize, opened).withConnectedSocket(try socket())
    } catch {
      return self.eventLoop.makeFailedFuture(error)
    }
  }

  private func bootstrap(
    _ timeout: TimeAmount,
    _ readSize: Int,
    _ opened: @escaping @Sendable (any Channel) -> Void
  ) -> ClientBootstrap {
    ClientBootstrap(group: self.eventLoop)
      .connectTimeout(timeout)
      // NIO keeps as many buffers as it reads in a row, and its TLS handler one with room for what was read in a row.
      .channelOption(.maxMessagesPerRead, value: 1)
      .channelOption(
        .recvAllocator,
        value: AdaptiveRecvByteBufferAllocator(minimum: 64, initial: 2048, maximum: readSize)
      )
      .channelInitializer { channel in
        opened(channel)
        return channel.eventLoop.makeSucceededVoidFuture()
      }
  }
}

/// A name in Linux's abstract namespace of Unix domain sockets (unix(7)).
///
/// NIO connects to addresses of the full size of `sockaddr_un` only, and all bytes behind the NUL belong to such a name. So
/// the socket is connected here. The system does that at once, or refuses it.
struct AbstractSocketAddress: Sendable {
  private let name: [UInt8]

  /// - Throws: If the name is none, or the system has no such sockets.
  init(_ name: String) throws {
    #if os(Linux)
    self.name = Array(name.utf8)
    guard (1...SocketAddress.longestPath).contains(self.name.count), !self.name.contains(0) else {
      throw ConnectError(
        code: .invalidArgument,
        message: """
          the name of an abstract Unix domain socket has 1 to \(SocketAddress.longestPath) bytes and no NUL, not \
          \(self.name.count) bytes
          """
      )
    }
    #else
    throw ConnectError.noAbstractSockets
    #endif
  }

  /// - Returns: The connected socket, which does not block.
  func connect() throws -> CInt {
    #if os(Linux)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    // A NUL is in front of the name.
    withUnsafeMutableBytes(of: &address.sun_path) { bytes in
      UnsafeMutableRawBufferPointer(rebasing: bytes.dropFirst()).copyBytes(from: self.name)
    }
    let size = socklen_t(MemoryLayout<sa_family_t>.size + 1 + self.name.count)
    let flags = Self.stream | Self.nonBlocking | Self.closedByExec
    let descriptor = Self.check(socket(AF_UNIX, flags, 0))
    let socket = try descriptor.get()
    let connected = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { Self.connect(socket, $0, size) }
    }
    do {
      _ = try Self.check(connected).get()
    } catch {
      close(socket)
      throw error
    }
    return socket
    #else
    throw ConnectError.noAbstractSockets
    #endif
  }

  #if os(Linux)
  private static func check(_ result: CInt) -> Result<CInt, IOError> {
    result >= 0 ? .success(result) : .failure(IOError(errnoCode: errno, reason: "connect"))
  }

  #if canImport(Glibc)
  private static let connect = Glibc.connect
  private static let stream = CInt(SOCK_STREAM.rawValue)
  private static let nonBlocking = CInt(SOCK_NONBLOCK.rawValue)
  private static let closedByExec = CInt(SOCK_CLOEXEC.rawValue)
  #else
  private static let connect = Musl.connect
  private static let stream = SOCK_STREAM
  private static let nonBlocking = SOCK_NONBLOCK
  private static let closedByExec = SOCK_CLOEXEC
  #endif
  #endif
}

extension ConnectError {
  /// Only Linux has the abstract namespace.
  static var noAbstractSockets: ConnectError {
    ConnectError(
      code: .invalidArgument,
      message: "unix-abstract: sockets exist on Linux only; give the socket a path and write unix:/PATH"
    ).asFinal
  }
}
