import NIOCore
import NIOHTTP1
import NIOHTTP2
import NIOPosix
import Synchronization

/// A server that accepts HTTP/1.1 and HTTP/2 in cleartext, and passes the requests to a ``ProxyTarget``.
final class ProxyServer: Sendable {
  /// The connections that are open.
  private final class Connections: Sendable {
    private let channels = Mutex<[ObjectIdentifier: any Channel]>([:])

    var all: [any Channel] { self.channels.withLock { Array($0.values) } }

    func add(_ channel: any Channel) {
      self.channels.withLock { $0[ObjectIdentifier(channel)] = channel }
      channel.closeFuture.whenComplete { _ in
        self.channels.withLock { _ = $0.removeValue(forKey: ObjectIdentifier(channel)) }
      }
    }
  }

  private let listener: any Channel
  private let connections: Connections
  private let address: ListenAddress

  private init(_ listener: any Channel, _ connections: Connections, _ address: ListenAddress) {
    self.listener = listener
    self.connections = connections
    self.address = address
  }

  /// - Parameter loop: Where all connections live. It is the executor of the target's streams.
  /// - Throws: ``Failure`` if the server cannot listen on the address.
  static func start(
    at address: ListenAddress,
    on loop: any EventLoop,
    _ target: ProxyTarget
  ) async throws -> ProxyServer {
    let connections = Connections()
    let bootstrap = ServerBootstrap(group: loop)
      .serverChannelOption(.backlog, value: 256)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
      .childChannelInitializer { channel in
        connections.add(channel)
        return channel.eventLoop.makeCompletedFuture { try Self.configure(channel, target) }
      }
    do {
      let listener = try await bootstrap.bind(host: address.host, port: address.port).get()
      return ProxyServer(listener, connections, address)
    } catch let error as IOError {
      let reason = String(cString: strerror(error.errnoCode))
      throw Failure.usage("cannot listen on \(address): \(reason)")
    } catch {
      throw Failure.usage("cannot listen on \(address): \(error)")
    }
  }

  /// Where the server is reached.
  var url: String {
    var address = self.address
    address.port = self.listener.localAddress?.port ?? address.port
    return "http://\(address)"
  }

  /// Closes all connections. First, clients have a moment to close their connections: data in flight to them could get lost.
  func stop() async {
    try? await self.listener.close()
    let deadline = ContinuousClock.now + .milliseconds(250)
    while !self.connections.all.isEmpty, ContinuousClock.now < deadline {
      try? await Task.sleep(for: .milliseconds(10))
    }
    for channel in self.connections.all { try? await channel.close() }
  }

  // MARK: Connections

  private static func configure(_ channel: any Channel, _ target: ProxyTarget) throws {
    try channel.pipeline.syncOperations.addHandler(
      PrefaceDetector { isHTTP2 in
        if isHTTP2 {
          try self.addHTTP2(to: channel, target)
        } else {
          let pipeline = channel.pipeline.syncOperations
          try pipeline.configureHTTPServerPipeline()
          try pipeline.addHandler(ProxyHandler(isHTTP2: false, target))
        }
      }
    )
  }

  private static func addHTTP2(to channel: any Channel, _ target: ProxyTarget) throws {
    var connection = NIOHTTP2Handler.ConnectionConfiguration()
    connection.initialSettings = [
      HTTP2Setting(parameter: .maxConcurrentStreams, value: 100),
      HTTP2Setting(parameter: .maxHeaderListSize, value: 65536),
    ]
    var stream = NIOHTTP2Handler.StreamConfiguration()
    // Clients on this machine that cancel many calls are no attack.
    stream.streamResetFrameRateLimit.windowLength = .milliseconds(100)
    _ = try channel.pipeline.syncOperations.configureHTTP2Pipeline(
      mode: .server,
      connectionConfiguration: connection,
      streamConfiguration: stream
    ) { stream in
      stream.eventLoop.makeCompletedFuture {
        let pipeline = stream.pipeline.syncOperations
        try pipeline.addHandler(HTTP2ResponseHandler())
        try pipeline.addHandler(HTTP2FramePayloadToHTTP1ServerCodec())
        try pipeline.addHandler(ProxyHandler(isHTTP2: true, target))
      }
    }
  }
}
