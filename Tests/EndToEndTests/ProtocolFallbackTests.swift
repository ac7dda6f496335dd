internal import Connect
internal import ConnectNIO
internal import LoopbackServer
internal import NIOCore
internal import SwiftProtobuf
import XCTest

/// Clients that may choose their protocol, and servers and proxies that do not let all of them through.
final class ProtocolFallbackTests: XCTestCase {
  private typealias Configure = (inout NIOHTTPClient.Configuration, inout ProtocolClientConfig) -> Void

  private static let echo = "/connect.test.v1.TestService/Echo"

  /// Calls `body` with a server, and a client that may choose.
  private func withServer(
    _ versions: LoopbackServer.Configuration.Versions = .all,
    tls: TestCertificates? = nil,
    _ networkProtocol: NetworkProtocol = .automatic(),
    configure: Configure = { _, _ in },
    _ body: (EmbeddedServer) async throws -> Void
  ) async throws {
    var server = tls.map(LoopbackServer.Configuration.tls) ?? .plaintext
    server.versions = versions
    try await EmbeddedServer.run(
      .http1,
      server: server,
      configure: { http, config in
        http.version = .automatic
        if let tls { http.tls.trustRoots = .pemBytes(Array(tls.authorityPEM.utf8)) }
        config.networkProtocol = networkProtocol
        configure(&http, &config)
      },
      body
    )
  }

  private func withClient(
    _ host: String,
    _ networkProtocol: NetworkProtocol = .automatic(),
    configure: Configure = { _, _ in },
    _ body: (ProtocolClient) async throws -> Void
  ) async throws {
    try await withPlainClient(
      .http1,
      host: host,
      configure: { http, config in
        http.version = .automatic
        config.networkProtocol = networkProtocol
        configure(&http, &config)
      },
      body
    )
  }

  /// The content types of the requests that a server has got, without codecs.
  private func types(_ embedded: EmbeddedServer, to path: String? = nil) -> [String] {
    embedded.server.requests.filter { path == nil || $0.path == path }.map { request in
      let type = request.headers.first("content-type") ?? ""
      return type.replacing("application/", with: "").replacing("+proto", with: "")
    }
  }

  /// Makes a call of each kind, and expects its result.
  private func expectAllKinds(
    _ client: ProtocolClient,
    _ what: String,
    type: String,
    file: StaticString = #filePath,
    line: UInt = #line
  ) async throws {
    let unary = await client.unary(TestMethods.echo, .with { $0.payload = .varied })
    XCTAssertEqual(
      unary.message?.payload,
      .varied,
      "\(what): \(String(describing: unary.error))",
      file: file,
      line: line
    )
    let received = unary.headers.first("content-type") ?? ""
    XCTAssertTrue(received.hasPrefix(type), "\(what): \(received)", file: file, line: line)
    let count = await client.serverStream(TestMethods.count, .with { $0.instruction.messageCount = 3 })
      .results.collect()
    XCTAssertEqual(count.code, .ok, "\(what): \(String(describing: count.error))", file: file, line: line)
    XCTAssertEqual(count.messages.map(\.number), [0, 1, 2], what, file: file, line: line)
    let sum = client.clientStream(TestMethods.sum)
    for number in 1...10 { try await sum.send(.with { $0.number = Int64(number) }) }
    let response = await sum.closeAndReceive()
    XCTAssertEqual(
      response.message?.sum,
      55,
      "\(what): \(String(describing: response.error))",
      file: file,
      line: line
    )
    let converse = client.bidirectionalStream(TestMethods.converse)
    for text in ["a", "b"] {
      try await converse.send(
        .with {
          $0.payload.text = text
          $0.instruction.halfDuplex = true
        }
      )
    }
    converse.finish()
    let outcome = await converse.results.collect()
    XCTAssertEqual(outcome.code, .ok, "\(what): \(String(describing: outcome.error))", file: file, line: line)
    XCTAssertEqual(outcome.messages.map(\.payload.text), ["a", "b"], what, file: file, line: line)
  }

  // MARK: gRPC gets through

  func testAGRPCServer() async throws {
    let server = try await PythonServer.shared(.grpc)
    let host = "http://127.0.0.1:\(try server.port("plain"))"
    try await self.withClient(host) { client in
      try await self.expectAllKinds(client, "grpcio", type: "application/grpc")
    }
  }

  /// Over HTTP/1.1, such a server answers with HTTP/2.
  func testAGRPCServerThatIsAskedInOtherProtocolsFirst() async throws {
    let server = try await PythonServer.shared(.grpc)
    let host = "http://127.0.0.1:\(try server.port("plain"))"
    try await self.withClient(host, .automatic([.connect, .grpcWeb, .grpc])) { client in
      try await self.expectAllKinds(client, "grpcio", type: "application/grpc")
    }
  }

  func testOverTLS() async throws {
    try await self.withServer(tls: .make()) { embedded in
      try await self.expectAllKinds(embedded.client, "TLS", type: "application/grpc+proto")
      XCTAssertEqual(Set(self.types(embedded)), ["grpc"])
    }
  }

  // As in requirements.txt: elsewhere there is no Envoy to install.
  #if os(Linux) && (arch(x86_64) || arch(arm64))
  func testEnvoy() async throws {
    let server = try await PythonServer.shared(.envoy)
    let host = "http://127.0.0.1:\(try server.port("http"))"
    try await self.withClient(host) { client in
      try await self.expectAllKinds(client, "Envoy", type: "application/grpc")
    }
    // Its filter takes gRPC-Web.
    try await self.withClient(host, configure: { http, _ in http.version = .http1Only }) { client in
      try await self.expectAllKinds(client, "Envoy, HTTP/1.1", type: "application/grpc-web")
    }
  }
  #endif

  // MARK: No HTTP/2

  func testAServerOfHTTP1() async throws {
    let made = try await TestCertificates.make()
    for certificates in [nil, made] {
      let what = certificates == nil ? "cleartext" : "TLS"
      try await self.withServer(.http1Only, tls: certificates) { embedded in
        try await self.expectAllKinds(embedded.client, what, type: "application/grpc-web+proto")
        XCTAssertEqual(self.types(embedded), Array(repeating: "grpc-web", count: 4), what)
      }
    }
  }

  /// Each kind of call is the first one.
  func testFirstCallsOfEachKind() async throws {
    try await self.withServer(.http1Only, .automatic([.grpc, .connect])) { embedded in
      let count = await embedded.client.serverStream(
        TestMethods.count,
        .with { $0.instruction.messageCount = 3 }
      ).results.collect()
      XCTAssertEqual(count.messages.map(\.number), [0, 1, 2], String(describing: count.error))
      XCTAssertEqual(self.types(embedded), ["connect"])
    }
    try await self.withServer(.http1Only, .automatic([.grpc, .connect])) { embedded in
      let sum = embedded.client.clientStream(TestMethods.sum)
      for number in 1...10 { try await sum.send(.with { $0.number = Int64(number) }) }
      let response = await sum.closeAndReceive()
      XCTAssertEqual(response.message?.sum, 55, String(describing: response.error))
      XCTAssertEqual(self.types(embedded), ["connect"])
    }
    try await self.withServer(.http1Only, .automatic([.grpc, .connect])) { embedded in
      let converse = embedded.client.bidirectionalStream(TestMethods.converse)
      for text in ["a", "b"] { try await converse.send(.with { $0.payload.text = text }) }
      converse.finish()
      let outcome = await converse.results.collect()
      XCTAssertEqual(outcome.messages.map(\.payload.text), ["a", "b"], String(describing: outcome.error))
      XCTAssertEqual(self.types(embedded), ["connect"])
    }
  }

  func testManyFirstCalls() async throws {
    try await self.withServer(.http1Only) { embedded in
      await withTaskGroup(of: String?.self) { group in
        for number in 0..<100 {
          group.addTask {
            await embedded.client.unary(TestMethods.echo, .with { $0.payload.text = "\(number)" }).message?
              .payload.text
          }
        }
        var texts: Set<String> = []
        for await text in group { texts.insert(text ?? "none") }
        XCTAssertEqual(texts, Set((0..<100).map(String.init)))
      }
      XCTAssertEqual(self.types(embedded), Array(repeating: "grpc-web", count: 100))
    }
  }

  /// A server that does not speak HTTP/2 is not waited for.
  func testACallThatWaitsForReady() async throws {
    try await self.withServer(.http1Only, configure: { $1.waitForReady = true }) { embedded in
      let response = await embedded.client.unary(
        TestMethods.echo,
        .with { $0.payload.text = "a" },
        options: CallOptions(timeout: .seconds(20))
      )
      XCTAssertEqual(response.message?.payload.text, "a", String(describing: response.error))
    }
  }

  func testAnHTTPClientWithoutHTTP2() async throws {
    try await self.withServer(configure: { http, _ in http.version = .http1Only }) { embedded in
      try await self.expectAllKinds(embedded.client, "HTTP/1.1", type: "application/grpc-web+proto")
    }
  }

  /// Only connections that are lost before the server's settings are no answer.
  func testAServerThatClosesTheConnection() async throws {
    let server = try await RawServer.start { connection in
      let head = String(buffer: try await connection.receive(until: "\r\n\r\n"))
      guard head.hasPrefix("POST") else { return }
      try await connection.send(
        "HTTP/1.1 200 OK\r\ncontent-type: application/proto\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
      )
    }
    try await self.withClient(server.url, .automatic([.grpc, .connect])) { client in
      let response = await client.unary(TestMethods.echo, EchoRequest())
      XCTAssertEqual(response.code, .ok, String(describing: response.error))
    }
    await server.stop()
  }

  // MARK: HTTP/2 without gRPC

  /// Answers as a server of gRPC-Web and Connect does that takes no gRPC.
  func testAServerThatRefusesGRPC() async throws {
    try await self.withServer { embedded in
      embedded.server.onRaw(Self.echo) { request, responder in
        let body = try await request.body()
        let type = request.record.headers.first("content-type") ?? ""
        guard type.hasPrefix("application/grpc-web") else { return try await responder.respond(status: 415) }
        try await responder.respond(headers: ["content-type": type], body: body.withTrailerFrame)
      }
      for text in ["a", "b"] {
        let response = await embedded.client.unary(TestMethods.echo, .with { $0.payload.text = text })
        XCTAssertEqual(response.message?.payload.text, text, String(describing: response.error))
      }
      XCTAssertEqual(self.types(embedded), ["grpc", "grpc-web", "grpc-web"])
    }
  }

  /// connectrpc on hypercorn speaks all protocols but the text form of gRPC-Web, which it answers with 415.
  func testAThirdPartyServerThatRefusesAProtocol() async throws {
    let server = try await PythonServer.shared(.connect)
    let host = "http://127.0.0.1:\(try server.port("http"))"
    let types = [
      (NetworkProtocol.connect, "application/proto"), (.grpc, "application/grpc"),
      (.grpcWeb, "application/grpc-web"),
    ]
    for (next, type) in types {
      try await self.withClient(host, .automatic([.grpcWebText, next])) { client in
        try await self.expectAllKinds(client, "\(next)", type: type)
      }
    }
  }

  /// The request may have been processed: it is not sent again. Later calls use gRPC-Web.
  func testAProxyThatDropsTrailers() async throws {
    try await self.withServer { embedded in
      embedded.server.onRaw(Self.echo) { request, responder in
        let body = try await request.body()
        let type = request.record.headers.first("content-type") ?? ""
        let isWeb = type.hasPrefix("application/grpc-web")
        try await responder.respond(
          headers: ["content-type": type],
          body: isWeb ? body.withTrailerFrame : body
        )
      }
      let first = await embedded.client.unary(TestMethods.echo, .with { $0.payload.text = "a" })
      XCTAssertEqual(first.code, .internalError)
      XCTAssertTrue(first.error?.message?.contains("proxies that drop trailers") == true)
      XCTAssertEqual(self.types(embedded), ["grpc"])
      for text in ["b", "c"] {
        let response = await embedded.client.unary(TestMethods.echo, .with { $0.payload.text = text })
        XCTAssertEqual(response.message?.payload.text, text, String(describing: response.error))
      }
      XCTAssertEqual(self.types(embedded), ["grpc", "grpc-web", "grpc-web"])
    }
  }

  /// The same for a stream, whose messages have come by then.
  func testAStreamThroughAProxyThatDropsTrailers() async throws {
    try await self.withServer { embedded in
      embedded.server.onRaw("/dropped") { request, responder in
        let body = try await request.body()
        let type = request.record.headers.first("content-type") ?? ""
        let isWeb = type.hasPrefix("application/grpc-web")
        try await responder.respond(
          headers: ["content-type": type],
          body: isWeb ? body.withTrailerFrame : body
        )
      }
      let codes = [Code.internalError, .ok]
      for code in codes {
        let outcome = await embedded.client.serverStream(streamMethod("/dropped"), CountRequest()).results
          .collect()
        XCTAssertEqual(outcome.code, code, String(describing: outcome.error))
        XCTAssertEqual(outcome.messages.count, 1)
      }
      XCTAssertEqual(self.types(embedded), ["grpc", "grpc-web"])
    }
  }

  // MARK: Nothing gets through

  func testAWebServer() async throws {
    let server = try await PythonServer.shared(.web)
    let host = "http://127.0.0.1:\(try server.port("http"))"
    try await self.withClient(host) { client in
      let response = await client.unary(TestMethods.echo, EchoRequest())
      XCTAssertEqual(response.error?.httpStatus, 501)
      let message = response.error?.message ?? ""
      XCTAssertTrue(message.hasPrefix("grpc-web: HTTP status 501"), message)
      XCTAssertTrue(message.contains("; tried before: grpc: \(host) does not speak HTTP/2"), message)
    }
  }

  /// An unreachable server says nothing about protocols.
  func testNoServer() async throws {
    let server = try await RawServer.start { _ in }
    await server.stop()
    try await self.withClient(server.url) { client in
      let response = await client.unary(TestMethods.echo, EchoRequest())
      XCTAssertEqual(response.code, .unavailable)
      XCTAssertFalse(response.error?.message?.contains("tried before") == true)
    }
  }
}

extension ByteBuffer {
  /// A body of gRPC-Web: these messages, and trailers that say ok.
  fileprivate var withTrailerFrame: ByteBuffer {
    var body = self
    body.writeImmutableBuffer(ByteBuffer(envelope: ByteBuffer(string: "grpc-status: 0\r\n"), flags: 0x80))
    return body
  }
}
