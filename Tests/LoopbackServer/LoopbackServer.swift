internal import Connect
package import ConnectTesting
internal import Foundation
internal import NIOCore
internal import NIOPosix
internal import SwiftProtobuf
internal import Synchronization

/// Implements `connect.test.v1.TestService` over the Connect protocol on HTTP/1.1 and HTTP/2. Keeps a ``Journal`` of
/// what it saw, and misbehaves where a test says so.
///
/// ```swift
/// let server = try await LoopbackServer.start()
/// server.onRaw("/broken") { _, responder in try await responder.respond(status: 502) }
/// // … call server.url …
/// await server.stop()
/// ```
public final class LoopbackServer: Sendable {
  public typealias RawHandler = @Sendable (RawRequest, RawResponder) async throws -> Void

  private struct State {
    var rawHandlers: [String: RawHandler] = [:]
    /// Beside those of the service.
    var methods: [String: ServerMethod] = [:]
    var connections: [ObjectIdentifier: any Channel] = [:]
    var isStopped = false
  }

  public let configuration: Configuration
  /// What the server saw.
  public let journal: Journal
  /// The port on 127.0.0.1; 0 for a unix domain socket.
  public let port: Int
  private let state: SharedState
  private let listener: any Channel

  private init(
    configuration: Configuration,
    journal: Journal,
    state: SharedState,
    listener: any Channel
  ) {
    self.configuration = configuration
    self.journal = journal
    self.state = state
    self.listener = listener
    self.port = listener.localAddress?.port ?? 0
  }

  /// State that the server shares with its connections.
  private final class SharedState: Sendable {
    let value = Mutex(State())
  }

  // MARK: - Life

  public static func start(_ configuration: Configuration = .plaintext) async throws -> LoopbackServer {
    // Registered so that error details of this type can be sent as JSON.
    Google_Protobuf_Any.register(messageType: Connect_Test_V1_ErrorInfo.self)
    Google_Protobuf_Any.register(messageType: Connect_Test_V1_Payload.self)
    let journal = Journal(limit: configuration.journalLimit)
    let state = SharedState()
    let service = RPCServer { head in
      TestService.methods[head.path] ?? state.value.withLock { $0.methods[head.path] }
    }
    let setup = try ConnectionSetup(configuration: configuration, journal: journal) { exchange in
      let path = exchange.request.path
      if let handler = state.value.withLock({ $0.rawHandlers[path] }) {
        try? await handler(RawRequest(exchange), RawResponder(exchange))
      } else {
        await service.serve(exchange)
      }
    }
    let bootstrap = ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .serverChannelOption(.backlog, value: 256)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let id = ObjectIdentifier(channel)
          let isStopped = state.value.withLock { state in
            if !state.isStopped { state.connections[id] = channel }
            return state.isStopped
          }
          guard !isStopped else { throw LoopbackServerError("the server has stopped") }
          channel.closeFuture.whenComplete { _ in
            state.value.withLock { _ = $0.connections.removeValue(forKey: id) }
          }
          try setup.initialize(channel)
        }
      }
      .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
    let listener =
      switch configuration.address {
      case .loopback:
        try await bootstrap.bind(host: "127.0.0.1", port: 0).get()
      case .ip(let address):
        try await bootstrap.bind(host: address, port: 0).get()
      case .unixSocket(let path):
        try await bootstrap.bind(unixDomainSocketPath: path, cleanupExistingSocketFile: true).get()
      }
    return LoopbackServer(configuration: configuration, journal: journal, state: state, listener: listener)
  }

  /// Stops listening and closes all connections.
  public func stop() async {
    await self.stopListening()
    await self.closeConnections()
    if case .unixSocket(let path) = self.configuration.address {
      try? FileManager.default.removeItem(atPath: path)
    }
  }

  func stopListening() async {
    self.state.value.withLock { $0.isStopped = true }
    try? await self.listener.close()
  }

  /// Closes all connections that are open now.
  public func closeConnections() async {
    for connection in self.openConnections { try? await connection.close() }
  }

  var openConnections: [any Channel] { self.state.value.withLock { Array($0.connections.values) } }

  // MARK: - Where it is

  /// The server's base address: `http://127.0.0.1:…`, `https://localhost:…` or `unix:…`.
  public var url: String {
    switch self.configuration.address {
    case .loopback where self.configuration.tls != nil: "https://localhost:\(self.port)"
    case .loopback: "http://127.0.0.1:\(self.port)"
    case .ip(let address): "\(self.configuration.tls == nil ? "http" : "https")://\(address):\(self.port)"
    case .unixSocket(let path): "unix:\(path)"
    }
  }

  // MARK: - What it does and saw

  /// Serves a path with a function of the test instead of the service.
  public func onRaw(_ path: String, _ handler: @escaping RawHandler) {
    self.state.value.withLock { $0.rawHandlers[path] = handler }
  }

  /// Serves a method beside those of the service.
  package func serve(_ method: ServerMethod) {
    self.state.value.withLock { $0.methods[method.info.path] = method }
  }

  /// All requests so far.
  public var requests: [RequestRecord] { self.journal.snapshot.requests }

  /// Waits for request number `index` (from 0) to a path.
  public func request(
    to path: String,
    index: Int = 0,
    timeout: Duration = .seconds(10)
  ) async throws -> RequestRecord {
    let snapshot = try await self.journal.wait(timeout: timeout) { $0.requests(to: path).count > index }
    return snapshot.requests(to: path)[index]
  }

  /// Waits for the end of request number `index` (from 0) to a path, whatever its outcome.
  public func endedRequest(
    to path: String,
    index: Int = 0,
    timeout: Duration = .seconds(10)
  ) async throws -> RequestRecord {
    let snapshot = try await self.journal.wait(timeout: timeout) { snapshot in
      let requests = snapshot.requests(to: path)
      return requests.count > index && requests[index].outcome != nil
    }
    return snapshot.requests(to: path)[index]
  }
}
