import Connect
import ConnectNIO
import LoopbackServer
import NIOCore
import NIOPosix
import Synchronization
import XCTest

/// What a server may send while the program decides about it.
final class ReadPauseTests: XCTestCase {
  /// Passes on what one side sends.
  private final class Forwarder: ChannelInboundHandler, Sendable {
    typealias InboundIn = ByteBuffer
    private let other: any Channel

    init(to other: any Channel) { self.other = other }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      self.other.writeAndFlush(self.unwrapInboundIn(data), promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) { self.other.close(promise: nil) }
    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
  }

  /// Sends bytes to a client until a limit, as fast as the client takes them.
  private final class Flood: Sendable {
    static let limit = 64 << 20
    private static let piece = ByteBuffer(repeating: 0, count: 1 << 16)

    let client = Mutex<(any Channel)?>(nil)
    private let count = Mutex(0)

    var sent: Int { self.count.withLock { $0 } }

    func start() {
      guard let channel = self.client.withLock({ $0 }), self.sent < Self.limit else { return }
      channel.writeAndFlush(Self.piece).whenSuccess {
        self.count.withLock { $0 += Self.piece.readableBytes }
        self.start()
      }
    }
  }

  /// A server behind this port has a connection, whose handshake `flood` can disturb.
  private func relay(to port: Int, _ flood: Flood) async throws -> any Channel {
    try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { client in
        flood.client.withLock { $0 = client }
        return ClientBootstrap(group: client.eventLoop)
          .channelInitializer { $0.pipeline.addHandler(Forwarder(to: client)) }
          .connect(host: "127.0.0.1", port: port)
          .flatMap { client.pipeline.addHandler(Forwarder(to: $0)) }
      }
      .bind(host: "127.0.0.1", port: 0).get()
  }

  func testServerThatSendsWhileTheProgramDecides() async throws {
    let certificates = try await TestCertificates.make()
    let server = try await LoopbackServer.start(.tls(certificates))
    let flood = Flood()
    let relay = try await self.relay(to: server.port, flood)
    let isAsked = Mutex(false)
    let isOver = Mutex(false)
    let verifier = ServerVerifier { _ in
      isAsked.withLock { $0 = true }
      while !isOver.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(5)) }
      throw ConnectError(code: .unauthenticated, message: "not this one")
    }
    let tls = NIOHTTPClient.Configuration.TLS(
      trustRoots: .pemBytes(Array(certificates.authorityPEM.utf8)),
      serverVerifier: verifier
    )
    let client = try TestClient(
      Origin(scheme: .https, host: "localhost", port: try XCTUnwrap(relay.localAddress?.port)),
      .init(tls: tls)
    )
    let call = client.call().start()
    try await eventually("the program is asked") { isAsked.withLock { $0 } }
    flood.start()
    // Until nothing more is taken.
    var (last, pauses) = (0, 0)
    while pauses < 60, flood.sent < Flood.limit {
      try await Task.sleep(for: .milliseconds(5))
      pauses = flood.sent == last ? pauses + 1 : 0
      last = flood.sent
    }
    XCTAssertLessThan(flood.sent, Flood.limit, "the client has kept all of it")
    isOver.withLock { $0 = true }
    let failure = try await call.failure()
    XCTAssertTrue(failure.error.message?.contains("not this one") == true, "\(failure.error)")
    await client.shutdown()
    try await relay.close()
    await server.stop()
  }
}
