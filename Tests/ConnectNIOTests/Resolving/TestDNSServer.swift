import Connect
import NIOCore
import NIOPosix
import Synchronization

@testable import ConnectChannels

/// A DNS server on 127.0.0.1, over UDP and TCP on the same port, with the records that a test gives it.
final class TestDNSServer: Sendable {
  /// A query that has arrived.
  struct Query: Sendable {
    var message: DNSMessage
    var isTCP: Bool
    /// Where the query came from.
    var source: SocketAddress
    var name: String { self.message.questions.first?.name.description ?? "" }
    var type: DNSRecordType? { self.message.questions.first?.type }
    /// For example `api.test A over UDP`.
    var text: String { "\(self.name) \(self.type?.description ?? "?") over \(self.isTCP ? "TCP" : "UDP")" }
  }

  /// The messages to send for a query.
  typealias Respond = @Sendable (_ query: Query, _ answer: [UInt8]) -> [[UInt8]]

  private struct State {
    var zone: TestZone
    var queries: [Query] = []
    var openConnections = 0
  }

  private let state: Mutex<State>
  private let respond: Respond
  private let udp: any Channel
  private let tcp = Mutex<(any Channel)?>(nil)

  /// - Parameter respond: What is sent in place of the answer.
  static func start(
    _ zone: TestZone = [:],
    respond: @escaping Respond = { _, answer in [answer] }
  ) async throws -> TestDNSServer {
    // A port that is free for UDP may be taken for TCP.
    for _ in 0..<20 {
      let udp = try await DatagramBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .bind(host: "127.0.0.1", port: 0).get()
      let server = TestDNSServer(zone, udp, respond)
      if try await server.listen() { return server }
      try await udp.close()
    }
    throw IOError(errnoCode: 98, reason: "no port is free for both UDP and TCP")
  }

  private init(_ zone: TestZone, _ udp: any Channel, _ respond: @escaping Respond) {
    self.state = Mutex(State(zone: zone))
    self.udp = udp
    self.respond = respond
  }

  private func listen() async throws -> Bool {
    let bootstrap = ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { channel in
        self.state.withLock { $0.openConnections += 1 }
        channel.closeFuture.whenComplete { _ in self.state.withLock { $0.openConnections -= 1 } }
        return channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(StreamHandler(self))
        }
      }
    guard let tcp = try? await bootstrap.bind(host: "127.0.0.1", port: self.port).get() else { return false }
    self.tcp.withLock { $0 = tcp }
    try await self.udp.pipeline.addHandler(DatagramHandler(self)).get()
    return true
  }

  func stop() async {
    try? await self.udp.close()
    try? await self.tcp.withLock { $0 }?.close()
  }

  var port: Int { self.udp.localAddress?.port ?? 0 }
  var address: EndpointAddress { .ip(.loopbackIPv4, port: self.port) }
  var queries: [Query] { self.state.withLock { $0.queries } }
  /// In order of their texts, since the queries of both address families arrive in any order.
  var texts: [String] { self.queries.map(\.text).sorted() }
  var openConnections: Int { self.state.withLock { $0.openConnections } }

  /// Answers differently from now on.
  func replace(_ zone: TestZone) {
    self.state.withLock { $0.zone = zone }
  }

  /// The true answer to a query.
  func answer(to query: Query) -> [UInt8] {
    self.state.withLock { $0.zone }.answer(to: query.message, isTCP: query.isTCP)
  }

  /// Sends a datagram for a query, whatever was sent before.
  func send(_ bytes: [UInt8], for query: Query) async throws {
    try await self.udp.writeAndFlush(
      AddressedEnvelope(remoteAddress: query.source, data: ByteBuffer(bytes: bytes))
    )
  }

  fileprivate func responses(to bytes: [UInt8], isTCP: Bool, from source: SocketAddress?) -> [[UInt8]] {
    guard let message = DNSMessage(decoding: bytes), let source else { return [] }
    let query = Query(message: message, isTCP: isTCP, source: source)
    let answer = self.answer(to: query)
    self.state.withLock { $0.queries.append(query) }
    return self.respond(query, answer)
  }
}

private final class DatagramHandler: ChannelInboundHandler, Sendable {
  typealias InboundIn = AddressedEnvelope<ByteBuffer>
  typealias OutboundOut = AddressedEnvelope<ByteBuffer>

  private let server: TestDNSServer

  init(_ server: TestDNSServer) {
    self.server = server
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let datagram = Self.unwrapInboundIn(data)
    let bytes = Array(datagram.data.readableBytesView)
    for response in self.server.responses(to: bytes, isTCP: false, from: datagram.remoteAddress) {
      let answer = AddressedEnvelope(
        remoteAddress: datagram.remoteAddress,
        data: ByteBuffer(bytes: response)
      )
      context.writeAndFlush(Self.wrapOutboundOut(answer), promise: nil)
    }
  }
}

private final class StreamHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private let server: TestDNSServer
  private var stream = DNSStream()

  init(_ server: TestDNSServer) {
    self.server = server
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    for message in self.stream.receive(Self.unwrapInboundIn(data).readableBytesView) {
      for response in self.server.responses(to: message, isTCP: true, from: context.remoteAddress) {
        let bytes = ByteBuffer(bytes: response.isEmpty ? [] : DNSStream.framed(response))
        context.writeAndFlush(Self.wrapOutboundOut(bytes), promise: nil)
        // An empty response stands for a connection that is closed without one.
        if response.isEmpty { context.close(promise: nil) }
      }
    }
  }
}
