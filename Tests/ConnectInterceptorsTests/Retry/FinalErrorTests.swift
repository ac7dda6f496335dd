import Connect
import ConnectChannels
import ConnectInterceptors
import ConnectNIO
import ConnectTesting
import Logging
import LoopbackServer
import NIOCore
import NIOPosix
import Synchronization
import XCTest

/// Errors that no repetition changes are not repeated. Against real servers, with what is recommended.
final class FinalErrorTests: XCTestCase {
  private typealias Request = Connect_Test_V1_EchoRequest
  private typealias Configuration = NIOHTTPClient.Configuration

  private static let get = MethodSpec<Request, Request>(
    path: "/final.Service/Get",
    streamType: .unary,
    idempotencyLevel: .noSideEffects
  )
  private static let list = MethodSpec<Request, Request>(
    path: "/final.Service/List",
    streamType: .serverStream,
    idempotencyLevel: .noSideEffects
  )

  /// Counts the attempts of all calls.
  private final class Attempts: Sendable {
    private let count = Mutex(0)

    func take() -> Int {
      self.count.withLock { count in
        defer { count = 0 }
        return count
      }
    }

    func factory() -> InterceptorFactory {
      { _ in Counter(self) }
    }

    private final class Counter: Interceptor {
      let attempts: Attempts

      init(_ attempts: Attempts) { self.attempts = attempts }

      func unaryFunction() -> UnaryFunction {
        UnaryFunction(requestFunction: { request, proceed in
          self.attempts.count.withLock { $0 += 1 }
          proceed(.success(request))
        })
      }

      func streamFunction() -> StreamFunction {
        StreamFunction(requestFunction: { request, proceed in
          self.attempts.count.withLock { $0 += 1 }
          proceed(.success(request))
        })
      }
    }
  }

  /// Makes a unary call and a stream, and expects that each fails with `code` after so many attempts.
  private func expect(
    _ code: Code,
    attempts expected: Int,
    host: String,
    _ configuration: Configuration = .defaults,
    _ networkProtocol: NetworkProtocol = .connect,
    waitForReady: Bool = false,
    timeout: Duration = .seconds(30),
    line: UInt = #line
  ) async throws {
    let attempts = Attempts()
    var parts = ClientParts(logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
    parts.retryPolicy?.backoff = Backoff(base: .milliseconds(1))
    parts.retryBudget = RetryBudget(maximumTokens: 100)
    parts.circuitBreaker = nil
    let httpClient = NIOHTTPClient(configuration: configuration)
    let config = ProtocolClientConfig(
      host: host,
      networkProtocol: networkProtocol,
      interceptors: .recommended(for: parts) + [attempts.factory()],
      timeout: timeout,
      waitForReady: waitForReady
    )
    let client = ProtocolClient(httpClient: httpClient, config: config)
    let response = await client.unary(Self.get, Request())
    XCTAssertEqual(response.code, code, "\(response)", line: line)
    XCTAssertEqual(attempts.take(), expected, "unary: \(response)", line: line)
    let stream = try await client.serverStream(Self.list, Request()).results.collected()
    XCTAssertEqual(stream.code, code, "\(stream)", line: line)
    XCTAssertEqual(attempts.take(), expected, "stream: \(stream)", line: line)
    await httpClient.shutdown(within: .seconds(5))
  }

  func testCertificates() async throws {
    let certificates = try await TestCertificates.make()
    let others = try await TestCertificates.make()
    let server = try await LoopbackServer.start(.tls(certificates))
    var wrongName = Configuration.TLS(trustRoots: .pemBytes(Array(certificates.authorityPEM.utf8)))
    wrongName.serverName = "other.test"
    for tls in [wrongName, .init(trustRoots: .pemBytes(Array(others.authorityPEM.utf8)))] {
      for networkProtocol in [NetworkProtocol.connect, .grpc] {
        try await self.expect(.unavailable, attempts: 1, host: server.url, .init(tls: tls), networkProtocol)
      }
      // As in gRPC, a call that waits for a server waits for one with another certificate.
      try await self.expect(
        .deadlineExceeded,
        attempts: 1,
        host: server.url,
        .init(tls: tls),
        waitForReady: true,
        timeout: .milliseconds(200)
      )
    }
    await server.stop()
  }

  func testProtocols() async throws {
    let certificates = try await TestCertificates.make()
    let tls = Configuration.TLS(trustRoots: .pemBytes(Array(certificates.authorityPEM.utf8)))
    var old = LoopbackServer.Configuration.tls(certificates)
    old.versions = .http1Only
    let server = try await LoopbackServer.start(old)
    // gRPC needs HTTP/2, and the server offers HTTP/1.1.
    try await self.expect(.unavailable, attempts: 1, host: server.url, .init(tls: tls), .grpc)
    await server.stop()
    // Here is no TLS, and no HTTP/2.
    let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(CleartextHandler())
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    let port = listener.localAddress?.port ?? 0
    try await self.expect(.unavailable, attempts: 1, host: "https://127.0.0.1:\(port)")
    try await self.expect(.unavailable, attempts: 1, host: "http://127.0.0.1:\(port)", .defaults, .grpc)
    try await listener.close()
  }

  func testSettings() async throws {
    var unusable = Configuration(tls: .init(trustRoots: .pemFile("/does/not/exist.pem")))
    try await self.expect(.failedPrecondition, attempts: 1, host: "https://127.0.0.1:1", unusable)
    // This is found out before interceptors run.
    unusable = Configuration(tls: .init(serverName: "*.test"))
    try await self.expect(.failedPrecondition, attempts: 0, host: "https://127.0.0.1:1", unusable)
  }

  /// A server that is not there may come back.
  func testOthers() async throws {
    let gone = try await LoopbackServer.start()
    await gone.stop()
    try await self.expect(.unavailable, attempts: 4, host: gone.url)
    // One that hangs up in the handshake may be about to start.
    let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { $0.close() }
      .bind(host: "127.0.0.1", port: 0).get()
    let port = listener.localAddress?.port ?? 0
    try await self.expect(.unavailable, attempts: 4, host: "https://127.0.0.1:\(port)")
    try await listener.close()
  }

  func testConnectionLostRetrier() async throws {
    let certificates = try await TestCertificates.make()
    let server = try await LoopbackServer.start(.tls(certificates))
    let gone = try await LoopbackServer.start()
    await gone.stop()
    for (host, expected) in [(server.url, 1), (gone.url, 3)] {
      let attempts = Attempts()
      let httpClient = NIOHTTPClient()
      let retrier = ConnectionLostRetrier(backoff: Backoff(base: .milliseconds(1)))
      let config = ProtocolClientConfig(
        host: host,
        interceptors: [{ _ in RequestInterceptor(retriers: [retrier]) }, attempts.factory()]
      )
      let response = await ProtocolClient(httpClient: httpClient, config: config).unary(Self.get, Request())
      XCTAssertEqual(response.code, .unavailable, "\(response)")
      XCTAssertEqual(attempts.take(), expected, "\(response)")
      await httpClient.shutdown(within: .seconds(5))
    }
    await server.stop()
  }
}

/// Answers in cleartext to whatever comes.
private final class CleartextHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let text = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"
    context.writeAndFlush(self.wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
  }
}
