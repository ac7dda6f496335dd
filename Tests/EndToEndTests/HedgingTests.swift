internal import Connect
internal import LoopbackServer
internal import NIOCore
import XCTest

/// Hedging over sockets: a second attempt overtakes one that is never answered, which is then reset.
final class HedgingTests: XCTestCase {
  private static let path = "/hedged"
  private static let method = MethodSpec<EchoRequest, EchoResponse>(
    info: MethodInfo(path: path, streamType: .unary, idempotencyLevel: .noSideEffects),
    input: .protobuf,
    output: .protobuf
  )

  private static let policy = HedgingPolicy(maximumAttempts: 2, delay: .milliseconds(5))

  /// A response with an empty message.
  private struct Answer {
    var networkProtocol: NetworkProtocol
    var contentType: String
    var body: [UInt8] = []
    var trailers: HeaderFields = [:]

    func send(_ responder: RawResponder) async throws {
      try await responder.respond(
        headers: ["content-type": self.contentType],
        body: ByteBuffer(bytes: self.body),
        trailers: self.trailers
      )
    }
  }

  private static let connect = Answer(networkProtocol: .connect, contentType: "application/proto")

  private static let answers = [
    connect,
    Answer(
      networkProtocol: .grpc,
      contentType: "application/grpc+proto",
      body: [0, 0, 0, 0, 0],
      trailers: ["grpc-status": "0"]
    ),
    Answer(
      networkProtocol: .grpcWeb,
      contentType: "application/grpc-web+proto",
      body: [0, 0, 0, 0, 0, 0x80, 0, 0, 0, 16] + Array("grpc-status: 0\r\n".utf8)
    ),
  ]

  func testTheLoserIsReset() async throws {
    for answer in Self.answers { try await self.expectTheLoserIsReset(.http2, answer) }
    try await self.expectTheLoserIsReset(.http1, Self.connect)
  }

  private func expectTheLoserIsReset(_ version: Version, _ answer: Answer) async throws {
    let name = "\(version.rawValue), \(answer.networkProtocol)"
    try await EmbeddedServer.run(
      version,
      configure: { _, config in
        config.networkProtocol = answer.networkProtocol
        config.hedging = { _ in Self.policy }
      },
      { embedded in
        embedded.server.onRaw(Self.path) { request, responder in
          guard request.attempt > 0 else { return await responder.waitUntilClosed() }
          try await answer.send(responder)
        }
        let response = await embedded.client.unary(Self.method, EchoRequest())
        XCTAssertEqual(response.code, .ok, "\(name): \(String(describing: response.error))")
        let loser = try await embedded.server.endedRequest(to: Self.path)
        let winner = try await embedded.server.endedRequest(to: Self.path, index: 1)
        XCTAssertEqual(loser.outcome, EmbeddedServer.givenUp(version), name)
        XCTAssertEqual(winner.outcome, .completed, name)
        XCTAssertNil(winner.resetCode, name)
        XCTAssertEqual(loser.headers["grpc-previous-rpc-attempts"], [], name)
        XCTAssertEqual(winner.headers["grpc-previous-rpc-attempts"], ["1"], name)
        let snapshot = embedded.server.journal.snapshot
        XCTAssertEqual(snapshot.requestCount, 2, name)
        XCTAssertEqual(snapshot.acceptedConnections, version == .http1 ? 2 : 1, name)
      }
    )
  }

  /// Each of many calls at once gets its answer, and each attempt that is not answered is reset.
  func testManyCallsAtOnce() async throws {
    try await EmbeddedServer.run(
      .http2,
      configure: { _, config in config.hedging = { _ in Self.policy } },
      { embedded in
        embedded.server.onRaw(Self.path) { request, responder in
          guard !request.record.headers["grpc-previous-rpc-attempts"].isEmpty else {
            return await responder.waitUntilClosed()
          }
          try await Self.connect.send(responder)
        }
        let count = 200
        let client = embedded.client
        await withTaskGroup(of: Code.self) { group in
          for _ in 0..<count { group.addTask { await client.unary(Self.method, EchoRequest()).code } }
          for await code in group { XCTAssertEqual(code, .ok) }
        }
        let snapshot = try await embedded.server.journal.wait { snapshot in
          snapshot.requests.allSatisfy { $0.outcome != nil }
        }
        XCTAssertEqual(snapshot.requestCount, 2 * count)
        XCTAssertEqual(snapshot.requests.count { $0.outcome == .resetByClient(8) }, count)
        XCTAssertEqual(snapshot.requests.count { $0.outcome == .completed }, count)
      }
    )
  }
}
