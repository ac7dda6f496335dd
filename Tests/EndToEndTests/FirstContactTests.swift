internal import Connect
internal import ConnectNIO
internal import LoopbackServer
internal import NIOCore
internal import SwiftProtobuf
import XCTest

/// The mistakes that users make first: the wrong protocol, version of HTTP, scheme, port or path. The error of each says
/// what is wrong, with host and method, and what to set.
final class FirstContactTests: XCTestCase {
  private static let web = [NetworkProtocol.connect, .grpcWeb, .grpcWebText]

  private func check(_ mistakes: [Mistake], file: StaticString = #filePath, line: UInt = #line) async throws {
    for mistake in mistakes { try await mistake.check(file: file, line: line) }
  }

  /// Checks what comes of connecting to a server that does `serve` with each connection.
  private func check(
    serving serve: @escaping @Sendable (RawConnection) async throws -> Void,
    _ mistakes: (String) -> [Mistake],
    file: StaticString = #filePath,
    line: UInt = #line
  ) async throws {
    let server = try await RawServer.start(serve)
    do {
      try await self.check(mistakes(server.url), file: file, line: line)
      await server.stop()
    } catch {
      await server.stop()
      throw error
    }
  }

  private static func url(_ script: PythonServer.Script, _ port: String) async throws -> String {
    "http://127.0.0.1:\(try await PythonServer.shared(script).port(port))"
  }

  // MARK: gRPC servers

  func testHTTP1ToAGRPCServer() async throws {
    let host = try await Self.url(.grpc, "plain")
    let message = """
      HOST speaks HTTP/2, and the client has spoken HTTP/1.1: for a gRPC server, set networkProtocol to .grpc; \
      for another, make the client with NIOHTTPClient(configuration: .init(version: .http2Only)) \
      (POST \(Mistake.echo))
      """
    try await self.check(Self.web.map { Mistake("HTTP/1.1", host, $0, .internalError, message) })
  }

  func testOtherProtocolsOverHTTP2ToAGRPCServer() async throws {
    let host = try await Self.url(.grpc, "plain")
    let message = """
      the server reset the stream: INTERNAL_ERROR; servers that speak only gRPC do this to other protocols; \
      for these, set networkProtocol to .grpc (POST HOST\(Mistake.echo))
      """
    for isStream in [false, true] {
      try await self.check(
        Self.web.map {
          Mistake(
            "stream: \(isStream)",
            host,
            $0,
            version: .http2Only,
            isStream: isStream,
            .internalError,
            message
          )
        }
      )
    }
  }

  /// What other gRPC servers than grpcio answer.
  func testAnswersOfGRPC() async throws {
    let says = "the server has answered in another protocol: set networkProtocol to .grpc"
    for version in Version.allCases {
      try await EmbeddedServer.run(version) { embedded in
        for (path, status) in [("/ok", 200), ("/unsupported", 415)] {
          embedded.server.onRaw(path) { request, responder in
            _ = try await request.body()
            try await responder.respond(
              status: status,
              headers: [
                "content-type": "application/grpc", "grpc-status": "13", "grpc-message": "not %22x%22",
              ]
            )
          }
        }
        let (host, version) = (embedded.server.url, version.configuration.version)
        try await self.check([
          Mistake(
            "200",
            host,
            .connect,
            version: version,
            method: "/ok",
            .unknown,
            """
            response has content-type 'application/grpc', expected 'application/proto'; \(says) \
            (POST HOST/ok, grpc-message 'not "x"')
            """
          ),
          Mistake(
            "200",
            host,
            .grpcWeb,
            version: version,
            method: "/ok",
            .unknown,
            """
            response has content-type 'application/grpc', expected 'application/grpc-web+proto'; \(says) \
            (POST HOST/ok, grpc-message 'not "x"')
            """
          ),
          Mistake(
            "415",
            host,
            .connect,
            version: version,
            method: "/unsupported",
            .unknown,
            """
            HTTP status 415 Unsupported Media Type; \(says) \
            (POST HOST/unsupported, content-type 'application/grpc', grpc-message 'not "x"')
            """
          ),
        ])
      }
    }
  }

  // MARK: gRPC to servers of HTTP/1.1

  private static let onlyHTTP1 = """
    for a server that speaks only HTTP/1.1, set networkProtocol to .connect or .grpcWeb, and leave the configuration's \
    version at .automatic, or set it to .http1Only with a connected socket (POST \(Mistake.echo))
    """

  private static let refused = """
    a server that expects TLS (https://), or that speaks only HTTP/1.1 may do this (POST \(Mistake.echo))
    """

  func testGRPCToAWebServer() async throws {
    // It takes the preface for HTTP/0.9, and sends a page without a head.
    let page =
      "HOST does not speak HTTP/2 on this port: it has answered 'Error response…505…; \(Self.onlyHTTP1)"
    try await self.check([Mistake("Python's", try await Self.url(.web, "http"), .grpc, .internalError, page)])
    var configuration = LoopbackServer.Configuration.plaintext
    configuration.versions = .http1Only
    try await EmbeddedServer.run(.http1, server: configuration) { embedded in
      let message = "HOST …only HTTP/1.1…(POST \(Mistake.echo))"
      try await self.check([Mistake("NIO's", embedded.server.url, .grpc, .unavailable, message)])
    }
  }

  func testGRPCToServersThatAnswerSomethingElse() async throws {
    let foreign = "HOST does not speak HTTP/2 on this port: it has answered"
    let answers: [(answer: String, Code, String)] = [
      (
        "HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n", .unavailable,
        "\(foreign) 'HTTP/1.1 400 Bad Request'; \(Self.onlyHTTP1)"
      ),
      ("SSH-2.0-OpenSSH_9.2p1\r\n", .internalError, "\(foreign) 'SSH-2.0-OpenSSH_9.2p1'; \(Self.onlyHTTP1)"),
      ("\u{1}\u{2}\u{7f}", .internalError, "\(foreign) 01 02 7f; \(Self.onlyHTTP1)"),
      (
        "", .unavailable, "HOST closed the connection before it had sent its HTTP/2 settings; \(Self.refused)"
      ),
    ]
    for (answer, code, message) in answers {
      try await self.check { connection in
        _ = try await connection.receive()
        if !answer.isEmpty { try await connection.send(answer) }
      } _: {
        [Mistake(answer, $0, .grpc, code, message)]
      }
    }
  }

  func testGRPCToServersThatDoNotAnswer() async throws {
    let reset =
      "the connection to HOST broke before the server had sent its HTTP/2 settings: …; \(Self.refused)"
    try await self.check { connection in
      _ = try await connection.receive()
      try await connection.abort()
    } _: {
      [Mistake("reset", $0, .grpc, .unavailable, reset)]
    }
    let timedOut = "waiting for the HTTP/2 settings of HOST timed out after 0.1 seconds; \(Self.refused)"
    try await self.check { connection in
      while try await connection.receive() != nil {}
    } _: {
      [Mistake("silence", $0, .grpc, connectTimeout: .milliseconds(100), .unavailable, timedOut)]
    }
  }

  // MARK: TLS

  func testCleartextToAPortForTLS() async throws {
    let closed = "HOST …that expects TLS (https://)…may do this (POST \(Mistake.echo))"
    for host in [try await Self.url(.grpc, "tls"), try await Self.url(.connect, "https")] {
      try await self.check((Self.web + [.grpc]).map { Mistake("closed", host, $0, .unavailable, closed) })
    }
    let alert =
      "HOST speaks TLS, and the client has used none: begin the host with https:// (POST \(Mistake.echo))"
    try await self.check { connection in
      _ = try await connection.receive()
      try await connection.send([0x15, 3, 1, 0, 2, 2, 70])
    } _: { host in
      (Self.web + [.grpc]).map { Mistake("alert", host, $0, .internalError, alert) }
    }
  }

  func testCleartextToAWebServerWithTLS() async throws {
    let pages = [
      (
        "text/html",
        "<html>\r\n<head><title>400 The plain HTTP request was sent to HTTPS port</title></head></html>",
        "400 The plain HTTP request was sent to HTTPS port"
      ),
      (
        "text/plain", "Client sent an HTTP request to an HTTPS server.\n",
        "Client sent an HTTP request to an HTTPS server."
      ),
    ]
    for (type, page, shown) in pages {
      let message = """
        HTTP status 400 Bad Request; the server expects TLS on this port: begin the host with https:// \
        (POST HOST\(Mistake.echo), content-type '\(type)', it says: '\(shown)')
        """
      let grpc = """
        HOST does not speak HTTP/2 on this port: it has answered 'HTTP/1.1 400 Bad Request' and expects TLS: \
        begin the host with https:// (POST \(Mistake.echo))
        """
      try await self.check { connection in
        _ = try await connection.receive()
        let length = page.utf8.count
        try await connection.send(
          "HTTP/1.1 400 Bad Request\r\ncontent-type: \(type)\r\ncontent-length: \(length)\r\n\r\n\(page)"
        )
      } _: { host in
        Self.web.map { Mistake("unary", host, $0, .internalError, message) }
          + Self.web.map { Mistake("stream", host, $0, isStream: true, .internalError, message) }
          + [Mistake("unary", host, .grpc, .unavailable, grpc)]
      }
    }
  }

  func testTLSToAPortForCleartext() async throws {
    let hosts = [
      try await Self.url(.grpc, "plain"), try await Self.url(.connect, "http"),
      try await Self.url(.web, "http"),
    ]
    for host in hosts {
      let host = host.replacing("http://127.0.0.1", with: "https://localhost")
      let message = "HOST …TLS on this port…http://…(POST \(Mistake.echo))"
      try await self.check(
        [NetworkProtocol.connect, .grpc].map { Mistake("TLS", host, $0, .unavailable, message) }
      )
    }
  }

  // MARK: Paths

  func testWrongPath() async throws {
    let advice =
      "no RPC has this path there: check the host, its base path, and the names of package and service"
    let hypercorn = try await Self.url(.connect, "http")
    let path = "/v1/a.B/C"
    let message = "HTTP status 404 Not Found; \(advice) (POST HOST\(path), no content-type)"
    for version in [NIOHTTPClient.Configuration.HTTPVersion.automatic, .http2Only] {
      try await self.check(
        (Self.web + [.grpc]).map {
          Mistake("hypercorn", hypercorn, $0, version: version, method: path, .unimplemented, message)
        }
      )
    }
    let page = """
      HTTP status 501 Not Implemented; \(advice) (POST HOST\(Mistake.echo), content-type 'text/html;charset=utf-8', \
      it says: '…Unsupported method ('POST')
      """
    try await self.check([
      Mistake("Python's", "\(try await Self.url(.web, "http"))/api", .connect, .unknown, page)
    ])
  }

  func testTheProtocolIsNotTaken() async throws {
    let message = """
      HTTP status 415 Unsupported Media Type; the server does not take requests of this protocol, or of this codec: \
      check networkProtocol and codec (POST HOST\(Mistake.echo), no content-type, \
      accept-post 'application/json, application/proto')
      """
    let host = try await Self.url(.connect, "http")
    try await self.check([
      Mistake("a stream of a unary method", host, .connect, isStream: true, .unknown, message)
    ])
  }

  func testRedirectsAndPages() async throws {
    let moved = """
      HTTP status 308 Permanent Redirect; redirects are not followed: change the host to where the service is \
      (POST HOST/moved, no content-type, location 'https://new.example/moved')
      """
    let page = """
      response has content-type 'text/html', expected 'application/…; that is a web page: \
      check the host and its base path (POST HOST/page)
      """
    for version in Version.allCases {
      try await EmbeddedServer.run(version) { embedded in
        embedded.server.onRaw("/moved") { request, responder in
          _ = try await request.body()
          try await responder.respond(
            status: 308,
            headers: ["location": "https://new.example/moved?session=secret"]
          )
        }
        embedded.server.onRaw("/page") { request, responder in
          _ = try await request.body()
          try await responder.respond(headers: ["content-type": "text/html"], text: "<html>Welcome</html>")
        }
        let (host, version) = (embedded.server.url, version.configuration.version)
        for networkProtocol in [NetworkProtocol.connect, .grpcWeb] + (version == .http2Only ? [.grpc] : []) {
          try await self.check([
            Mistake("redirect", host, networkProtocol, version: version, method: "/moved", .unknown, moved),
            Mistake("page", host, networkProtocol, version: version, method: "/page", .unknown, page),
          ])
        }
      }
    }
  }

  func testQueriesOfGETAreNotShown() async throws {
    let host = try await Self.url(.connect, "http")
    try await withPlainClient(.http1, host: host, configure: { $1.unaryGET = .alwaysEnabled }) { client in
      let method = MethodSpec<EchoRequest, EchoResponse>(
        path: "/a.B/Lookup",
        streamType: .unary,
        idempotencyLevel: .noSideEffects
      )
      let message = await client.unary(method, .with { $0.payload.text = "secret" }).error?.message ?? ""
      XCTAssertTrue(message.hasSuffix(" (GET \(host)/a.B/Lookup, no content-type)"), message)
    }
  }

  // MARK: Later

  /// A connection that has served before is known to be to the right server.
  func testAdviceIsForTheFirstRequestAlone() async throws {
    try await EmbeddedServer.run(.http1) { embedded in
      _ = try await embedded.client.unary(TestMethods.echo, EchoRequest()).get()
      embedded.server.onRaw("/close") { _, responder in await responder.closeConnection() }
      let message = await embedded.client.unary(unaryMethod("/close"), EchoRequest()).error?.message ?? ""
      XCTAssertTrue(message.contains("was lost before the response"), message)
      XCTAssertFalse(message.contains("TLS"), message)
    }
  }
}
