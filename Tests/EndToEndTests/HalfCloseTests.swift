internal import Connect
internal import ConnectNIO
internal import LoopbackServer
internal import NIOCore
internal import SwiftProtobuf
internal import TestSupport
import XCTest

/// The server completes its response while the client still has messages to send: the response counts, once, and
/// nothing more can be sent.
final class HalfCloseTests: XCTestCase {
  /// What the server does with a request that has not ended.
  private struct Case: CustomStringConvertible {
    var wire: WireSetting
    /// Whether the server says that all is well.
    var isSuccess: Bool

    var description: String { "\(self.wire), \(self.isSuccess ? "success" : "failure")" }

    static let all: [Case] = [NetworkProtocol.connect, .grpc, .grpcWeb].flatMap { networkProtocol in
      Version.allCases.flatMap { version in
        [true, false].map { Case(wire: WireSetting(networkProtocol, over: version), isSuccess: $0) }
      }
    }.filter { $0.wire.version == .http2 || $0.wire.networkProtocol != .grpc }

    /// A whole response: one message and success, or a failure alone.
    func respond(_ responder: RawResponder) async throws {
      let message: [UInt8] = self.isSuccess ? [0, 0, 0, 0, 2, 8, 1] : []
      let status: HeaderFields =
        self.isSuccess ? ["grpc-status": "0"] : ["grpc-status": "8", "grpc-message": "enough"]
      func respond(_ type: String, flags: UInt8? = nil, _ end: String = "", trailers: HeaderFields = [:])
        async throws
      {
        var body = ByteBuffer(bytes: message)
        if let flags {
          body.writeImmutableBuffer(ByteBuffer(envelope: ByteBuffer(string: end), flags: flags))
        }
        try await responder.respond(headers: ["content-type": type], body: body, trailers: trailers)
      }
      switch self.wire.networkProtocol.description {
      case NetworkProtocol.connect.description:
        let end = self.isSuccess ? "{}" : #"{"error":{"code":"resource_exhausted","message":"enough"}}"#
        try await respond("application/connect+proto", flags: 2, end)
      case NetworkProtocol.grpc.description:
        try await respond("application/grpc+proto", trailers: status)
      default:
        let block = status.fields.map { "\($0.name): \($0.value)\r\n" }.joined()
        try await respond("application/grpc-web+proto", flags: 0x80, block)
      }
    }
  }

  private static let path = "/half"
  private static let converse = MethodSpec<ConverseRequest, ConverseResponse>(
    path: path,
    streamType: .bidirectionalStream
  )
  private static let sum = MethodSpec<ConverseRequest, SumResponse>(path: path, streamType: .clientStream)
  /// More than all windows and buffers on the way take.
  private static let large = Payload.with { $0.text = String(repeating: "x", count: 1 << 20) }

  /// Runs `body` with a server that answers as soon as it has got something of the request.
  private func run(
    _ setting: Case,
    _ body: (EmbeddedServer) async throws -> Void
  ) async throws {
    try await EmbeddedServer.run(
      setting.wire.version ?? .http2,
      configure: { $1.networkProtocol = setting.wire.networkProtocol }
    ) { embedded in
      embedded.server.onRaw(Self.path) { request, responder in
        _ = try await request.nextChunk()
        try await setting.respond(responder)
      }
      try await body(embedded)
      // The client is as good as new.
      let response = await embedded.client.unary(TestMethods.echo, EchoRequest())
      XCTAssertEqual(response.code, .ok, "\(setting): \(response)")
      if setting.wire.version == .http2 {
        XCTAssertEqual(embedded.server.journal.snapshot.acceptedConnections, 1, "\(setting)")
      }
    }
  }

  private func expect(_ error: ConnectError?, _ setting: Case) {
    XCTAssertEqual(error?.code, setting.isSuccess ? nil : .resourceExhausted, "\(setting)")
    XCTAssertEqual(error?.message, setting.isSuccess ? nil : "enough", "\(setting)")
  }

  /// Sends until that fails, as it must.
  private func sendOn(_ setting: Case, _ send: @escaping @Sendable () async throws -> Void) async throws {
    try await bounded("the end of sending") {
      do {
        while true { try await send() }
      } catch {
        XCTAssertEqual((error as? ConnectError)?.code, .failedPrecondition, "\(setting): \(error)")
      }
    }
  }

  private func expectReset(_ embedded: EmbeddedServer, _ setting: Case) async throws {
    guard setting.wire.version == .http2 else { return }
    let snapshot = try await embedded.server.journal.wait {
      $0.requests(to: Self.path).first?.resetCode != nil
    }
    let record = try XCTUnwrap(snapshot.requests(to: Self.path).first)
    XCTAssertEqual(record.resetCode, 8, "\(setting): CANCEL")
    XCTAssertFalse(record.isRequestComplete, "\(setting)")
    XCTAssertEqual(record.outcome, .completed, "\(setting)")
  }

  // MARK: Messages wait to be sent

  func testBidirectionalStream() async throws {
    for setting in Case.all {
      try await self.run(setting) { embedded in
        let stream = embedded.client.bidirectionalStream(Self.converse)
        let outcome = Task { await stream.results.collect() }
        try await self.sendOn(setting) { try await stream.send(.with { $0.payload = Self.large }) }
        let result = try await bounded("the end of the stream") { await outcome.value }
        XCTAssertEqual(
          result.code,
          setting.isSuccess ? .ok : .resourceExhausted,
          "\(setting): \(result.ends)"
        )
        XCTAssertEqual(result.messages.count, setting.isSuccess ? 1 : 0, "\(setting)")
        self.expect(result.error, setting)
        // Nor later.
        try await self.sendOn(setting) { try await stream.send(ConverseRequest()) }
        stream.finish()
        try await self.expectReset(embedded, setting)
      }
    }
  }

  func testClientStream() async throws {
    for setting in Case.all {
      try await self.run(setting) { embedded in
        let stream = embedded.client.clientStream(Self.sum)
        try await self.sendOn(setting) { try await stream.send(.with { $0.payload = Self.large }) }
        let response = try await bounded("the response") { await stream.closeAndReceive() }
        XCTAssertEqual(response.message?.sum, setting.isSuccess ? 1 : nil, "\(setting): \(response)")
        self.expect(response.error, setting)
        try await self.sendOn(setting) { try await stream.send(ConverseRequest()) }
        try await self.expectReset(embedded, setting)
      }
    }
  }

  /// With callbacks: each message that was not sent is reported, and there is one end.
  func testCallbacks() async throws {
    for setting in Case.all {
      try await self.run(setting) { embedded in
        let results = Recorder<StreamResult<ConverseResponse>>()
        let sendings = Recorder<ConnectError?>()
        let handle = embedded.client.bidirectionalStream(Self.converse) { results.record($0) }
        for _ in 0..<4 { handle.send(.with { $0.payload = Self.large }) { sendings.record($0) } }
        let outcome = try await results.outcome()
        handle.send(ConverseRequest()) { sendings.record($0) }
        handle.finish()
        try await sendings.wait(for: 5, of: "messages sent or refused")
        XCTAssertEqual(outcome.code, setting.isSuccess ? .ok : .resourceExhausted, "\(setting)")
        self.expect(outcome.error, setting)
        XCTAssertEqual(sendings.values.last??.code, .failedPrecondition, "\(setting)")
        XCTAssertEqual(StreamOutcome(results.values).ends.count, 1, "\(setting)")
        try await self.expectReset(embedded, setting)
      }
    }
  }

  // MARK: Nothing waits to be sent

  /// Over HTTP/2 the client adds END_STREAM, and nothing is reset.
  func testClientThatIsBetweenMessages() async throws {
    for setting in Case.all {
      try await self.run(setting) { embedded in
        let stream = embedded.client.bidirectionalStream(Self.converse)
        try await stream.send(.with { $0.payload.text = "small" })
        let outcome = Task { await stream.results.collect() }
        let result = try await bounded("the end of the stream") { await outcome.value }
        XCTAssertEqual(
          result.code,
          setting.isSuccess ? .ok : .resourceExhausted,
          "\(setting): \(result.ends)"
        )
        self.expect(result.error, setting)
        try await self.sendOn(setting) { try await stream.send(ConverseRequest()) }
        guard setting.wire.version == .http2 else { return }
        try await embedded.server.journal.wait { $0.requests(to: Self.path).first?.isRequestComplete == true }
        let snapshot = embedded.server.journal.snapshot
        XCTAssertEqual(snapshot.resetCount, 0, "\(setting)")
        XCTAssertEqual(snapshot.requests(to: Self.path).first?.outcome, .completed, "\(setting)")
      }
    }
  }
}
