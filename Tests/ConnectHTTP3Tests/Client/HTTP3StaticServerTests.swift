internal import Connect
internal import ConnectNIO
internal import LoopbackServer
internal import NIOCore
internal import SwiftProtobuf
internal import XCTest

/// Calls to a second implementation of a server, that of ngtcp2's authors. It knows nothing of RPC and serves files.
final class HTTP3StaticServerTests: XCTestCase {
  private struct Served {
    let client: ProtocolClient
    let endpoint: any HTTPEndpoint
    let proxy: UDPProxy

    func get(_ target: String) async -> StreamRecord {
      await StreamRecord.run(
        HTTPStreamRequest(method: .get, target: target, headers: [:], body: .complete(ByteBuffer())),
        on: self.endpoint
      )
    }
  }

  private func withServer(
    _ files: [String: [UInt8]] = [:],
    options: [String] = [],
    networkProtocol: NetworkProtocol = .connect,
    through conditions: UDPProxy.Conditions = UDPProxy.Conditions(),
    _ body: (Served) async throws -> Void
  ) async throws {
    let server = try await StaticHTTP3Server(files, options: options)
    let proxy = try await UDPProxy(to: server.port, conditions)
    let httpClient = NIOHTTPClient(configuration: server.configuration)
    let host = "https://localhost:\(proxy.port)"
    let client = ProtocolClient(
      httpClient: httpClient,
      config: ProtocolClientConfig(
        host: host,
        networkProtocol: networkProtocol,
        codec: ProtoCodec(),
        timeout: .seconds(60),
        unaryGET: .alwaysEnabled
      )
    )
    let origin = Origin(scheme: .https, host: "localhost", port: proxy.port)
    let endpoint = try httpClient.endpoint(for: origin, on: nil, requiresHTTP2: false)
    try await body(Served(client: client, endpoint: endpoint, proxy: proxy))
    await httpClient.shutdown(within: .zero)
    try await proxy.stop()
  }

  private func unary(_ path: String, isGET: Bool) -> MethodSpec<
    Connect_Test_V1_LookupRequest, Connect_Test_V1_LookupResponse
  > {
    MethodSpec(path: path, streamType: .unary, idempotencyLevel: isGET ? .noSideEffects : .unknown)
  }

  private func enveloped(_ flags: UInt8, _ message: [UInt8]) -> [UInt8] {
    var buffer = ByteBuffer()
    buffer.writeInteger(flags)
    buffer.writeInteger(UInt32(message.count))
    return Array(buffer: buffer) + message
  }

  func testUnary() async throws {
    let answer: [UInt8] = try Connect_Test_V1_LookupResponse.with { $0.value = "from a file" }
      .serializedBytes()
    try await self.withServer(["answer.pb": answer]) { served in
      for isGET in [true, false] {
        for _ in 0..<3 {
          let response = await served.client.unary(
            self.unary("/answer.pb", isGET: isGET),
            .with { $0.key = "k" }
          )
          XCTAssertEqual(response.message?.value, "from a file", "\(String(describing: response.error))")
        }
      }
    }
  }

  func testServerStream() async throws {
    let messages = try (0..<500).flatMap { number -> [UInt8] in
      let message = Connect_Test_V1_CountResponse.with {
        $0.number = Int64(number)
        $0.padding = .init(repeating: 7, count: 1000)
      }
      return self.enveloped(0, try message.serializedBytes())
    }
    let files = ["count.stream": messages + self.enveloped(2, Array("{}".utf8)), "cut.stream": messages]
    try await self.withServer(files) { served in
      for name in files.keys {
        let method = MethodSpec<Connect_Test_V1_CountRequest, Connect_Test_V1_CountResponse>(
          path: "/\(name)",
          streamType: .serverStream
        )
        let outcome = try await Outcome(served.client.serverStream(method, .with { $0.from = 0 }).results)
        XCTAssertEqual(outcome.messages.map(\.number), (0..<500).map { $0 }, name)
        // A response that just ends has no status.
        XCTAssertEqual(outcome.code == .ok, name == "count.stream", "\(String(describing: outcome.error))")
      }
    }
  }

  /// What it serves is no answer to a call, in any protocol.
  func testWrongContentTypeAndNoSuchFile() async throws {
    for networkProtocol in [NetworkProtocol.connect, .grpc, .grpcWeb] {
      try await self.withServer(["page.html": Array("<p>".utf8)], networkProtocol: networkProtocol) {
        served in
        for (path, code) in [("/page.html", Code.unknown), ("/nothing", .unimplemented)] {
          let response = await served.client.unary(self.unary(path, isGET: false), .with { $0.key = "k" })
          XCTAssertEqual(response.code, code, "\(networkProtocol) \(String(describing: response.error))")
        }
      }
    }
  }

  /// More than both windows of the client, several times over, and more than the server holds unacknowledged.
  func testLargeDownloads() async throws {
    try await self.withServer { served in
      await withTaskGroup(of: StreamRecord.self) { group in
        for _ in 0..<4 { group.addTask { await served.get("/5000000") } }
        for await record in group {
          XCTAssertEqual(record.byteCount, 5_000_000, "\(String(describing: record.failure))")
        }
      }
    }
  }

  func testLargeUpload() async throws {
    try await self.withServer { served in
      let body = ByteBuffer(repeating: 7, count: 3_000_000)
      let record = await StreamRecord.run(
        HTTPStreamRequest(method: .post, target: "/10", headers: [:], body: .complete(body)),
        on: served.endpoint
      )
      XCTAssertEqual(record.byteCount, 10, "\(String(describing: record.failure))")
    }
  }

  func testIPv6() async throws {
    let server = try await StaticHTTP3Server(host: "::1")
    let httpClient = NIOHTTPClient(configuration: server.configuration)
    let origin = Origin(scheme: .https, host: "::1", port: server.port)
    let endpoint = try httpClient.endpoint(for: origin, on: nil, requiresHTTP2: false)
    let record = await StreamRecord.run(
      HTTPStreamRequest(method: .get, target: "/1000000", headers: [:], body: .complete(ByteBuffer())),
      on: endpoint
    )
    XCTAssertEqual(record.byteCount, 1_000_000, "\(String(describing: record.failure))")
    XCTAssertEqual(record.info?.remoteAddress, "[::1]:\(server.port)")
    await httpClient.shutdown(within: .zero)
  }

  /// The path keeps marks of congestion, and the server says that it has seen them: so all datagrams ask for them.
  func testCongestionMarks() async throws {
    try await self.withServer(through: UDPProxy.Conditions(congested: 5)) { served in
      for _ in 0..<50 {
        let record = await served.get("/20000")
        XCTAssertEqual(record.byteCount, 20_000, "\(String(describing: record.failure))")
      }
      let counts = try await served.proxy.counts()
      XCTAssertGreaterThan(counts.markable, 40)
    }
  }

  /// It measures the path with larger datagrams, which are lost here. It also asks for a token, and sends trailers.
  func testPathThatLosesDatagrams() async throws {
    let options = ["--validate-addr", "--send-trailers", "--max-streams-bidi=10"]
    let conditions = UDPProxy.Conditions(lost: 3, reordered: 5, largest: 1280 - 48)
    try await self.withServer(options: options, through: conditions) { served in
      await withTaskGroup(of: StreamRecord.self) { group in
        for _ in 0..<30 { group.addTask { await served.get("/20000") } }
        for await record in group {
          XCTAssertEqual(record.byteCount, 20_000, "\(String(describing: record.failure))")
          XCTAssertEqual(record.trailers?.isEmpty, false)
        }
      }
    }
  }
}
