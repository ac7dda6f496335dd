import Connect
import ConnectInterceptors
import ConnectNIO
import ConnectTesting
import LoopbackServer
import NIOCore
import SwiftProtobuf
import XCTest

/// Credentials against a server over TLS.
final class CredentialsServerTests: XCTestCase {
  private static let echo = MethodSpec<Connect_Test_V1_EchoRequest, Connect_Test_V1_EchoResponse>(
    path: "/guarded.Service/Echo",
    streamType: .unary
  )
  private static let count = MethodSpec<Connect_Test_V1_CountRequest, Connect_Test_V1_CountResponse>(
    path: "/guarded.Service/Count",
    streamType: .serverStream
  )

  /// - Parameter accepted: What the server accepts in `authorization`.
  private func run(
    _ version: NIOHTTPClient.Configuration.HTTPVersion,
    provider: TokenProvider,
    accepted: Set<String>,
    _ body: (ProtocolClient, LoopbackServer) async throws -> Void
  ) async throws {
    let certificates = try await TestCertificates.make()
    let server = try await LoopbackServer.start(.tls(certificates))
    server.onRaw(Self.echo.path) { request, responder in
      guard accepted.contains(request.record.headers.first("authorization") ?? "") else {
        return try await responder.respond(
          status: 401,
          headers: ["content-type": "application/json"],
          text: #"{"code": "unauthenticated"}"#
        )
      }
      let message = try Connect_Test_V1_EchoRequest(
        serializedBytes: Array((try await request.body()).readableBytesView)
      )
      let response =
        try Connect_Test_V1_EchoResponse.with { $0.payload = message.payload }
        .serializedBytes() as [UInt8]
      try await responder.respond(
        headers: ["content-type": "application/proto"],
        body: ByteBuffer(bytes: response)
      )
    }
    // As a server that sends its headers at once, and finds out about the token a little later.
    server.onRaw(Self.count.path) { request, responder in
      let isAccepted = accepted.contains(request.record.headers.first("authorization") ?? "")
      _ = try await request.body()
      try await responder.sendHead(headers: ["content-type": "application/connect+proto"])
      var body = ByteBuffer()
      if isAccepted {
        let message = try Connect_Test_V1_CountResponse.with { $0.number = 3 }.serializedBytes() as [UInt8]
        body.writeImmutableBuffer(ByteBuffer(envelope: ByteBuffer(bytes: message), flags: 0))
        body.writeImmutableBuffer(ByteBuffer(envelope: ByteBuffer(string: "{}"), flags: 2))
      } else {
        let end = #"{"error": {"code": "unauthenticated"}}"#
        body.writeImmutableBuffer(ByteBuffer(envelope: ByteBuffer(string: end), flags: 2))
      }
      try await responder.sendBody(body)
      try await responder.finish()
    }
    var configuration = NIOHTTPClient.Configuration(version: version)
    configuration.tls.trustRoots = .pemBytes(Array(certificates.authorityPEM.utf8))
    let httpClient = NIOHTTPClient(configuration: configuration)
    // Far more than the delay of a busy machine between two writes of the server.
    let credentials = Credentials(
      for: ["localhost"],
      token: AccessToken("revoked"),
      configuration: .init(streamHeaderDelay: .seconds(30))
    ) { try await provider.fetch($0) }
    let client = ProtocolClient(
      httpClient: httpClient,
      config: ProtocolClientConfig(
        host: server.url,
        interceptors: [{ _ in CredentialsInterceptor(credentials) }],
        timeout: .seconds(60)
      )
    )
    do { try await body(client, server) } catch { XCTFail("\(error)") }
    await httpClient.shutdown(within: .seconds(10))
    await server.stop()
  }

  func testThousandCallsWithARevokedToken() async throws {
    for version in [NIOHTTPClient.Configuration.HTTPVersion.http1Only, .automatic] {
      let provider = TokenProvider()
      try await self.run(version, provider: provider, accepted: ["Bearer token 1"]) { client, server in
        let sum = await withTaskGroup(of: Int32.self) { group in
          for index in 0..<1000 {
            group.addTask {
              let response = await client.unary(Self.echo, .with { $0.payload.small = Int32(index) })
              return response.message?.payload.small ?? -1_000_000
            }
          }
          return await group.reduce(0, +)
        }
        XCTAssertEqual(sum, 499_500)
        XCTAssertEqual(provider.reasons, [.refused])
        let tokens = server.requests.map { $0.headers.first("authorization") }
        XCTAssertEqual(tokens.filter { $0 == "Bearer token 1" }.count, 1000)
        XCTAssertEqual(
          Set(tokens),
          tokens.contains("Bearer revoked") ? ["Bearer revoked", "Bearer token 1"] : []
        )
      }
    }
  }

  func testStreams() async throws {
    let provider = TokenProvider()
    try await self.run(.automatic, provider: provider, accepted: ["Bearer token 1"]) { client, server in
      let stream = try await client.serverStream(Self.count, .init()).results.collected()
      XCTAssertEqual(try stream.requireMessages().map(\.number), [3])
      XCTAssertEqual(
        server.requests.map { $0.headers.first("authorization") },
        ["Bearer revoked", "Bearer token 1"]
      )
    }
  }
}
