internal import Foundation
internal import LoopbackServer
internal import NIOCore
internal import TestSupport
internal import XCTest

/// What `connectrpc doctor` finds out about servers with and without faults.
final class CommandLineDoctorTests: XCTestCase {
  private static let health = "/grpc.health.v1.Health/Check"

  /// A server with TLS, and the authority that its certificates come from.
  private func withServer(
    _ certificates: TestCertificates,
    requiresClientCertificate: Bool = false,
    _ body: (_ url: String) async throws -> Void
  ) async throws {
    var configuration = LoopbackServer.Configuration.tls(certificates)
    configuration.tls?.requiresClientCertificate = requiresClientCertificate
    let server = try await LoopbackServer.start(configuration)
    do {
      try await body(server.url)
    } catch {
      await server.stop()
      throw error
    }
    await server.stop()
  }

  private func line(_ start: String, _ output: ProgramOutput) throws -> String {
    try XCTUnwrap(output.lines.first { $0.hasPrefix(start) }, "\(start) in:\n\(output.text)\(output.error)")
  }

  func testNothingAnswers() async throws {
    let output = try await self.connectrpc("doctor", "unix:/nonexistent/socket")
    XCTAssertEqual(output.status, 78, output.error)
    let line = try self.line("NO  protocols", output)
    XCTAssertTrue(line.contains("nothing answers"), line)
    XCTAssertTrue(output.text.contains("check the path of the socket"), output.text)
  }

  // MARK: Certificates

  func testAServerInOrder() async throws {
    let root = try await TestCertificate.make("root", ["basicConstraints=critical,CA:TRUE"])
    let middle = try await TestCertificate.make(
      "middle",
      ["basicConstraints=critical,CA:TRUE"],
      issuer: root
    )
    let own = try await TestCertificate.make("own", issuer: middle)
    let authority = try self.temporaryFile(root.pem)
    try await self.withServer(TestCertificates().serving(own, issuers: [middle])) { url in
      let output = try await self.connectrpc("doctor", url, "--cacert", authority)
      let certificate = try self.line("ok  certificate", output)
      for part in [
        "'CN=own'", "issued by 'CN=middle'", "2020-01-01 to 2099-01-01", "for localhost, 127.0.0.1",
      ] {
        XCTAssertTrue(certificate.contains(part), certificate)
      }
      XCTAssertTrue(try self.line("ok  issuer", output).contains("'CN=middle', issued by 'CN=root'"))
      XCTAssertTrue(try self.line("ok  trust", output).contains("'CN=root'"))
      XCTAssertTrue(try self.line("ok  tls versions", output).contains("TLS 1.3, TLS 1.2"), output.text)
      XCTAssertTrue(try self.line("ok  alpn", output).contains("h2, http/1.1"), output.text)
      XCTAssertFalse(output.text.contains("client cert"), output.text)
      // It has no health service, and no reflection.
      XCTAssertTrue(output.text.contains("ok  HTTP/2"), output.text)
    }
  }

  func testWhatIsMissingOfAChain() async throws {
    let root = try await TestCertificate.make("root", ["basicConstraints=critical,CA:TRUE"])
    let middle = try await TestCertificate.make(
      "middle",
      ["basicConstraints=critical,CA:TRUE"],
      issuer: root
    )
    let own = try await TestCertificate.make("own", issuer: middle)
    let authority = try self.temporaryFile(root.pem)
    try await self.withServer(TestCertificates().serving(own)) { url in
      let output = try await self.connectrpc("doctor", url, "--cacert", authority)
      XCTAssertEqual(output.status, 64 + 14, output.text)
      let trust = try self.line("NO  trust", output)
      XCTAssertTrue(trust.contains("'CN=middle', which has issued 'CN=own', is missing"), trust)
      XCTAssertTrue(output.text.contains("let the server send it"), output.text)
      // Pinned, the same certificate is all that is needed.
      let pinned = try await self.connectrpc("doctor", url, "--cacert", try self.temporaryFile(own.pem))
      XCTAssertTrue(try self.line("ok  trust", pinned).contains("'CN=own' is trusted"), pinned.text)
    }
    try await self.withServer(TestCertificates().serving(own, issuers: [middle, root])) { url in
      let output = try await self.connectrpc("doctor", url)
      XCTAssertEqual(output.status, 64 + 14, output.text)
      XCTAssertTrue(try self.line("NO  trust", output).contains("'CN=root' is self-signed"), output.text)
    }
  }

  func testExpiredCertificatesAndWrongNames() async throws {
    let expired = try await TestCertificate.make("own", validity: .past)
    let authority = try self.temporaryFile(expired.pem)
    try await self.withServer(TestCertificates().serving(expired)) { url in
      let output = try await self.connectrpc("doctor", url, "--cacert", authority)
      XCTAssertEqual(output.status, 64 + 14, output.text)
      XCTAssertTrue(
        try self.line("NO  certificate", output).contains("2020-01-01 to 2020-02-01"),
        output.text
      )
      XCTAssertTrue(output.text.contains("it has expired: renew it"), output.text)
      let insecure = try await self.connectrpc("doctor", url, "-k")
      XCTAssertTrue(insecure.text.contains("--  certificate"), insecure.text)
      XCTAssertTrue(insecure.text.contains("ok  HTTP/2"), insecure.text)
    }
    let own = try await TestCertificate.make("own")
    let trusted = try self.temporaryFile(own.pem)
    try await self.withServer(TestCertificates().serving(own)) { url in
      let output = try await self.connectrpc("doctor", url, "--cacert", trusted, "--servername", "other.test")
      XCTAssertEqual(output.status, 64 + 14, output.text)
      let name = try self.line("NO  server name", output)
      XCTAssertTrue(name.contains("not for 'other.test', but for localhost, 127.0.0.1"), name)
    }
  }

  func testClientCertificates() async throws {
    let server = try await PythonServer.shared(.grpc)
    let url = "https://localhost:\(try server.port("mutual"))"
    let authority = try self.temporaryFile(server.text("authority"))
    let output = try await self.connectrpc("doctor", url, "--cacert", authority)
    XCTAssertEqual(output.status, 64 + 14, output.text)
    XCTAssertTrue(output.text.contains("--  client cert"), output.text)
    XCTAssertTrue(output.text.contains("if calls fail without it, give --cert and --key"), output.text)
    XCTAssertTrue(output.text.contains(" a client certificate"), output.text)
    XCTAssertTrue(output.text.contains("give --cert and --key of a client"), output.text)
    XCTAssertFalse(output.text.contains("ok  grpc "), output.text)
    let known = try await self.connectrpc(
      "doctor",
      url,
      "--cacert",
      authority,
      "--cert",
      try self.temporaryFile(server.text("client_chain")),
      "--key",
      try self.temporaryFile(server.text("client_key"))
    )
    XCTAssertEqual(known.status, 0, known.text)
    XCTAssertTrue(known.text.contains("ok  client cert"), known.text)
    XCTAssertTrue(known.text.contains("ok  grpc "), known.text)
  }

  // MARK: Responses

  /// A proxy that drops trailers, in front of a server with all protocols.
  func testTrailersThatAreDropped() async throws {
    for speaksConnect in [true, false] {
      let server = try await LoopbackServer.start()
      server.onRaw(Self.health) { request, responder in
        _ = try await request.body()
        let type = request.record.headers.first("content-type") ?? ""
        if type.hasPrefix("application/grpc"), !type.hasPrefix("application/grpc-web") {
          let message = ByteBuffer(bytes: [0, 0, 0, 0, 2, 8, 1])
          return try await responder.respond(headers: ["content-type": "application/grpc"], body: message)
        }
        guard speaksConnect, type.hasPrefix("application/proto") else {
          return try await responder.respond(status: 415)
        }
        try await responder.respond(
          headers: ["content-type": "application/proto"],
          body: ByteBuffer(bytes: [8, 1])
        )
      }
      let output = try await self.connectrpc("doctor", server.url)
      await server.stop()
      XCTAssertTrue(output.text.contains("NO  grpc "), output.text)
      XCTAssertTrue(try self.line("NO  trailers", output).contains("drops them"), output.text)
      XCTAssertEqual(output.status, speaksConnect ? 0 : 64 + 14, output.text)
      XCTAssertEqual(output.text.contains("use --protocol connect"), speaksConnect, output.text)
    }
  }

  func testTrailersThatArriveAndCompression() async throws {
    let output = try await self.connectrpc("doctor", try await self.reflecting())
    XCTAssertEqual(output.status, 0, output.text)
    XCTAssertTrue(output.text.contains("ok  trailers"), output.text)
    XCTAssertTrue(try self.line("ok  gzip", output).contains("requests are accepted"), output.text)
    XCTAssertTrue(output.text.contains("--  health"), output.text)
    let hypercorn = try await PythonServer.shared(.connect)
    let connect = try await self.connectrpc("doctor", "http://127.0.0.1:\(try hypercorn.port("http"))")
    XCTAssertFalse(connect.text.contains("NO  "), connect.text)
    XCTAssertFalse(connect.text.contains("trailers are dropped"), connect.text)
  }

  /// A server that knows no compression refuses requests in it.
  func testCompressionThatIsRefused() async throws {
    let server = try await LoopbackServer.start()
    server.onRaw(Self.health) { request, responder in
      _ = try await request.body()
      let headers = request.record.headers
      guard headers.first("content-type")?.hasPrefix("application/proto") == true else {
        return try await responder.respond(status: 415)
      }
      guard headers.first("content-encoding") == nil else {
        return try await responder.respond(
          status: 501,
          headers: ["content-type": "application/json", "accept-encoding": "zip"],
          text: #"{"code": "unimplemented", "message": "unknown compression"}"#
        )
      }
      try await responder.respond(
        headers: ["content-type": "application/proto"],
        body: ByteBuffer(bytes: [8, 1])
      )
    }
    let output = try await self.connectrpc("doctor", server.url)
    await server.stop()
    XCTAssertEqual(output.status, 0, output.text)
    let gzip = try self.line("--  gzip", output)
    XCTAssertTrue(gzip.contains("unknown compression") && gzip.contains("it accepts zip"), gzip)
    XCTAssertTrue(output.text.contains("call without --compress"), output.text)
  }

  /// A server whose health service answers in the Connect protocol with this; it takes nothing else.
  private func withHealth(
    status: Int = 200,
    _ body: ByteBuffer,
    type: String? = nil,
    compressed: (status: Int, text: String)? = nil,
    _ check: (ProgramOutput) throws -> Void
  ) async throws {
    let server = try await LoopbackServer.start()
    server.onRaw(Self.health) { request, responder in
      _ = try await request.body()
      let headers = request.record.headers
      guard headers.first("content-type")?.hasPrefix("application/proto") == true else {
        return try await responder.respond(status: 415)
      }
      if headers.first("content-encoding") != nil, let compressed {
        return try await responder.respond(
          status: compressed.status,
          headers: ["content-type": "application/json"],
          text: compressed.text
        )
      }
      let type = type ?? (status == 200 ? "application/proto" : "application/json")
      try await responder.respond(status: status, headers: ["content-type": type], body: body)
    }
    let output = try await self.connectrpc("doctor", server.url)
    await server.stop()
    try check(output)
  }

  /// Any web server may answer with JSON.
  func testJSONThatIsNotConnect() async throws {
    for (status, text) in [
      (404, #"{"message": "Not Found"}"#), (404, #"{"code": 404, "message": "none"}"#),
      (401, #"{"error": "x"}"#),
      (200, "{}"),
    ] {
      try await self.withHealth(status: status, ByteBuffer(string: text), type: "application/json") {
        output in
        XCTAssertFalse(output.text.contains("ok  connect"), output.text)
        XCTAssertTrue(output.text.contains("--  connect"), output.text)
        XCTAssertNotEqual(output.status, 0, output.text)
      }
    }
    let error = ByteBuffer(string: #"{"code": "unauthenticated"}"#)
    try await self.withHealth(status: 401, error) { output in
      XCTAssertTrue(try self.line("ok  connect", output).contains("unauthenticated"))
      XCTAssertTrue(output.text.contains("give credentials by -H"), output.text)
      XCTAssertEqual(output.status, 0, output.text)
    }
  }

  // MARK: Methods

  /// A server without health and reflection, by a method of it.
  func testMethodInPlaceOfTheHealthService() async throws {
    let server = try await LoopbackServer.start()
    let service = "\(server.url)/connect.test.v1.TestService"
    for method in ["Echo", "Count", "Sum"] {
      let output = try await self.connectrpc("doctor", "\(service)/\(method)")
      XCTAssertEqual(output.status, 0, "\(method): \(output.text)")
      for line in ["ok  connect ", "ok  grpc ", "ok  grpc-web ", "ok  method "] {
        XCTAssertTrue(output.text.contains(line), "\(method), \(line): \(output.text)")
      }
      XCTAssertFalse(output.text.contains("health"), output.text)
    }
    let one = try await self.connectrpc("doctor", "\(service)/Echo", "--protocol", "grpc", "--http", "2")
    XCTAssertEqual(one.status, 0, one.text)
    XCTAssertTrue(one.text.contains("ok  grpc "), one.text)
    XCTAssertFalse(one.text.contains("connect  "), one.text)
    await server.stop()
  }

  /// The method refuses an empty message: it is there, and has read it.
  func testMethodThatFails() async throws {
    for (status, code, mark, exit) in [
      (400, "invalid_argument", "ok", 0), (501, "unimplemented", "--", 0), (401, "unauthenticated", "--", 0),
      (503, "unavailable", "NO", 64 + 14),
    ] as [(Int, String, String, Int32)] {
      let server = try await LoopbackServer.start()
      server.onRaw("/acme.Users/Get") { request, responder in
        _ = try await request.body()
        guard request.record.headers.first("content-type") == "application/proto" else {
          return try await responder.respond(status: 415)
        }
        try await responder.respond(
          status: status,
          headers: ["content-type": "application/json"],
          text: #"{"code": "\#(code)"}"#
        )
      }
      let output = try await self.connectrpc("doctor", "\(server.url)/acme.Users/Get")
      await server.stop()
      XCTAssertTrue(try self.line("\(mark)  method", output).contains(code), output.text)
      XCTAssertTrue(try self.line("ok  connect", output).contains(code), output.text)
      XCTAssertEqual(output.text.contains("ok  gzip"), code == "invalid_argument", output.text)
      XCTAssertEqual(output.status, exit, output.text)
    }
  }

  func testMethodsThatAreNotThere() async throws {
    let web = try await PythonServer.shared(.web)
    let url = "http://127.0.0.1:\(try web.port("http"))"
    let server = try await LoopbackServer.start()
    for path in ["/acme.Users/Get", Self.health, ReflectionAnswer.path] {
      server.onRaw(path) { request, responder in
        _ = try await request.body()
        try await responder.respond(status: 404, text: "no such page")
      }
    }
    let output = try await self.connectrpc("doctor", "\(server.url)/acme.Users/Get")
    XCTAssertEqual(output.status, 1, output.text)
    XCTAssertTrue(try self.line("--  unknown", output).contains("there is no acme.Users/Get"), output.text)
    let health = try await self.connectrpc("doctor", server.url)
    await server.stop()
    XCTAssertEqual(health.status, 1, health.text)
    XCTAssertTrue(health.text.contains("connectrpc doctor URL/package.Service/Method"), health.text)
    let other = try await self.connectrpc("doctor", "\(url)/acme.Users/Get")
    XCTAssertNotEqual(other.status, 0, other.text)
  }

  /// Without a health service, protocols are tried with reflection, which changes nothing.
  func testReflectionInPlaceOfTheHealthService() async throws {
    let server = try await LoopbackServer.start()
    server.onRaw(Self.health) { request, responder in
      _ = try await request.body()
      try await responder.respond(status: 404)
    }
    ReflectionAnswer.serve(server) { _ in .services(["acme.Users"]) }
    let output = try await self.connectrpc("doctor", server.url)
    await server.stop()
    XCTAssertEqual(output.status, 0, output.text)
    XCTAssertTrue(try self.line("ok  connect", output).contains("by its reflection"), output.text)
    XCTAssertTrue(output.text.contains("--  health"), output.text)
    XCTAssertTrue(output.text.contains("ok  reflection   acme.Users"), output.text)
  }

  func testWhatTheHealthServiceSays() async throws {
    for (bytes, line) in [
      ([8, 1], "ok  health       the health service answers: SERVING"),
      ([8, 2], "NO  health       the health service answers: NOT_SERVING"),
      ([8, 3], "--  health       the health service answers: SERVICE_UNKNOWN"),
      ([], "--  health       the health service answers: UNKNOWN"),
    ] as [([UInt8], String)] {
      try await self.withHealth(ByteBuffer(bytes: bytes)) { output in
        XCTAssertTrue(output.lines.contains(line), output.text)
        // Calls get through.
        XCTAssertEqual(output.status, 0, output.text)
      }
    }
    for (status, code, mark, exit) in [
      (404, "not_found", "--", 0), (500, "internal", "NO", 0), (503, "unavailable", "NO", 64 + 14),
    ] as [(Int, String, String, Int32)] {
      try await self.withHealth(status: status, ByteBuffer(string: #"{"code": "\#(code)"}"#)) { output in
        XCTAssertTrue(try self.line("\(mark)  health", output).contains(code), output.text)
        XCTAssertEqual(output.status, exit, output.text)
      }
    }
  }

  /// A failure says nothing about compression, unless it is about it.
  func testWhatIsKnownOfCompression() async throws {
    let serving = ByteBuffer(bytes: [8, 1])
    for (status, code, part) in [
      (503, "unavailable", "--  gzip         not known: unavailable"),
      (401, "unauthenticated", "--  gzip         not known: unauthenticated"),
      (415, "unknown", "--  gzip         requests are refused"),
      (501, "unimplemented", "--  gzip         requests are refused"),
    ] {
      let answer = (status: status, text: #"{"code": "\#(code)"}"#)
      try await self.withHealth(serving, compressed: answer) { output in
        XCTAssertTrue(output.text.contains(part), output.text)
        XCTAssertEqual(output.status, 0, output.text)
      }
    }
    try await self.withHealth(serving) { output in
      XCTAssertTrue(output.text.contains("ok  gzip         requests are accepted"), output.text)
    }
  }
}
