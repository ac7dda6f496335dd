internal import Connect
internal import ConnectChannels
internal import ConnectHTTP3
internal import ConnectNIO
internal import Foundation
internal import Logging
internal import LoopbackServer
internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// A server over TCP (HTTP/1.1 and HTTP/2) whose responses announce HTTP/3.
final class TwoWayServer: Sendable {
  static let path = "/where"

  let tcp: LoopbackServer
  private let field = Mutex<String?>(nil)
  private let authorities: [UInt8]

  /// - Parameter trusting: Certificate authorities to trust besides this server's authority.
  init(
    versions: LoopbackServer.Configuration.Versions = .all,
    trusting others: [UInt8] = []
  ) async throws {
    let certificates = try await TestCertificates.make()
    var configuration = LoopbackServer.Configuration.tls(certificates)
    configuration.versions = versions
    self.tcp = try await LoopbackServer.start(configuration)
    self.authorities = Array(certificates.authorityPEM.utf8) + others
    self.tcp.onRaw(Self.path) { [weak self] _, responder in
      let field = self?.field.withLock { $0 }
      try await responder.respond(headers: field.map { ["alt-svc": $0] } ?? [:], text: "tcp")
    }
  }

  /// Sets the announcement in future responses over TCP.
  func announce(_ field: String?) { self.field.withLock { $0 = field } }
  func announce(port: Int) { self.announce("h3=\":\(port)\"; ma=3600") }

  var configuration: NIOHTTPClient.Configuration {
    NIOHTTPClient.Configuration(tls: .init(trustRoots: .pemBytes(self.authorities)), http3: .discovered)
  }

  func client(
    _ change: (inout NIOHTTPClient.Configuration) -> Void = { _ in },
    requiresHTTP2: Bool = false,
    logger: Logger? = nil
  ) throws -> TwoWayClient {
    var configuration = self.configuration
    change(&configuration)
    return try TwoWayClient(configuration, port: self.tcp.port, requiresHTTP2: requiresHTTP2, logger: logger)
  }

  func stop() async { await self.tcp.stop() }
}

/// A client and one of its endpoints.
struct TwoWayClient {
  let client: NIOHTTPClient
  let endpoint: any HTTPEndpoint
  private let origin: Origin
  private let requiresHTTP2: Bool

  init(
    _ configuration: NIOHTTPClient.Configuration,
    host: String = "localhost",
    port: Int,
    requiresHTTP2: Bool = false,
    logger: Logger? = nil
  ) throws {
    self.client = NIOHTTPClient(configuration: configuration, logger: logger)
    self.origin = Origin(scheme: .https, host: host, port: port)
    self.requiresHTTP2 = requiresHTTP2
    self.endpoint = try self.client.endpoint(for: self.origin, on: nil, requiresHTTP2: requiresHTTP2)
  }

  func get(_ target: String = TwoWayServer.path) async -> StreamRecord {
    await StreamRecord.run(
      HTTPStreamRequest(method: .get, target: target, headers: [:], body: .complete(ByteBuffer())),
      on: self.endpoint
    )
  }

  /// Makes calls until one goes over this version. The first call is to the path that announces HTTP/3.
  ///
  /// - Returns: The last call.
  func get(_ target: String = TwoWayServer.path, until version: HTTPConnectionInfo.Version) async throws
    -> StreamRecord
  {
    let end = ContinuousClock.now + .seconds(20)
    var record = await self.get()
    while record.info?.version != version, ContinuousClock.now < end {
      try await Task.sleep(for: .milliseconds(5))
      record = await self.get(target)
    }
    return record
  }

  /// Waits until the client knows that its connections were closed.
  func connectionsDidClose() async throws {
    let end = ContinuousClock.now + .seconds(20)
    while try self.client.connectivity(of: self.origin, requiresHTTP2: self.requiresHTTP2) == .ready,
      ContinuousClock.now < end
    {
      try await Task.sleep(for: .milliseconds(2))
    }
  }

  /// Waits until `count` connections were opened.
  func connectionsDidOpen(_ count: Int) async throws {
    let end = ContinuousClock.now + .seconds(20)
    while ContinuousClock.now < end {
      let endpoints = await self.client.snapshots().flatMap(\.endpoints)
      if endpoints.reduce(0, { $0 + $1.openedConnections }) >= count { return }
      try await Task.sleep(for: .milliseconds(2))
    }
  }

  func shutdown() async { await self.client.shutdown(within: .seconds(5)) }
}

/// A UDP port of 127.0.0.1 where nobody answers, as in a network that drops UDP.
struct SilentPort {
  let channel: any Channel
  let port: Int
  private let senders = Senders()

  init() async throws {
    let senders = self.senders
    self.channel = try await DatagramBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(senders) }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    self.port = self.channel.localAddress?.port ?? 0
  }

  /// The number of sockets that have sent datagrams. Each attempt with QUIC has a new socket.
  var tries: Int { self.senders.addresses.withLock(\.count) }

  private final class Senders: ChannelInboundHandler, Sendable {
    typealias InboundIn = AddressedEnvelope<ByteBuffer>

    let addresses = Mutex<Set<SocketAddress>>([])

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      let address = self.unwrapInboundIn(data).remoteAddress
      _ = self.addresses.withLock { $0.insert(address) }
    }
  }

  func close() async throws { try await self.channel.close() }
}
