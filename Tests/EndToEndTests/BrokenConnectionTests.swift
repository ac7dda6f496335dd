internal import Connect
internal import LoopbackServer
internal import NIOCore
internal import SwiftProtobuf
import XCTest

/// Connections that cannot be made, or break: each call fails once with the right code, and later calls work.
final class BrokenConnectionTests: XCTestCase {
  // MARK: No connection

  func testConnectionRefused() async throws {
    // The port was free a moment ago.
    let server = try await RawServer.start { _ in }
    let url = server.url
    await server.stop()
    for version in Version.allCases {
      try await withPlainClient(version, host: url) { client in
        let expected = ExpectedError(.unavailable, "refused")
        let error = try await client.expectFailure(TestMethods.echo, expected, version.rawValue)
        XCTAssertTrue(error?.message?.contains("127.0.0.1") == true, error?.message ?? "")
        try await client.expectStreamFailure(TestMethods.count, expected, version.rawValue)
      }
    }
  }

  func testNoSuchUnixSocket() async throws {
    for version in Version.allCases {
      try await withPlainClient(version, host: "unix:\(temporarySocketPath())") { client in
        let expected = ExpectedError(.unavailable, "No such file")
        try await client.expectFailure(TestMethods.echo, expected, version.rawValue)
      }
    }
  }

  func testNoSuchHost() async throws {
    for version in Version.allCases {
      try await withPlainClient(version, host: "http://no-such-host.invalid") { client in
        let expected = ExpectedError(.unavailable, "no-such-host.invalid")
        try await client.expectFailure(TestMethods.echo, expected, version.rawValue)
      }
    }
  }

  // MARK: Not HTTP

  func testGarbageInsteadOfHTTP() async throws {
    let server = try await RawServer.start { connection in
      _ = try await connection.receive()
      try await connection.send("This is not HTTP at all.\r\nGo away.\r\n\r\n")
      while try await connection.receive() != nil {}
    }
    for version in Version.allCases {
      try await withPlainClient(version, host: server.url) { client in
        let code: Code = version == .http1 ? .internalError : .unavailable
        let responses = Recorder<ResponseMessage<EchoResponse>>()
        client.unary(TestMethods.echo, EchoRequest()) { responses.record($0) }
        let response = try await responses.wait(for: 1)[0]
        XCTAssertTrue([.internalError, code].contains(response.code), "\(version.rawValue): \(response)")
        XCTAssertFalse(response.error?.message?.isEmpty ?? true, version.rawValue)
        let outcome = await client.serverStream(TestMethods.count, CountRequest()).results.collect()
        XCTAssertTrue([.internalError, code].contains(outcome.code), "\(version.rawValue): \(outcome)")
        XCTAssertEqual(responses.values.count, 1)
      }
    }
    await server.stop()
  }

  /// A server that speaks HTTP/1.1 alone answers the preface of HTTP/2 with an error.
  func testHTTP2AgainstAServerOfHTTP1() async throws {
    var configuration = LoopbackServer.Configuration.plaintext
    configuration.versions = .http1Only
    try await EmbeddedServer.run(.http2, server: configuration) { embedded in
      let response = await embedded.client.unary(TestMethods.echo, EchoRequest())
      XCTAssertTrue([.unavailable, .internalError].contains(response.code), "\(response)")
      XCTAssertFalse(response.error?.message?.isEmpty ?? true)
    }
  }

  // MARK: Closed connections

  func testClosedBeforeTheHead() async throws {
    try await self.expectLost(.unavailable) { _, responder in await responder.closeConnection() }
  }

  func testClosedBehindTheHead() async throws {
    try await self.expectLost(.unavailable) { request, responder in
      try await responder.sendHead(headers: Self.headers(for: request, length: 100))
      await responder.closeConnection()
    }
  }

  func testClosedInTheBody() async throws {
    try await self.expectLost(.unavailable) { request, responder in
      try await responder.sendHead(headers: Self.headers(for: request, length: 100))
      try await responder.sendBody([0, 0, 0, 0, 80, 1, 2, 3])
      await responder.closeConnection()
    }
  }

  // MARK: Resets

  func testResetBeforeTheHead() async throws {
    try await self.expectLost(.internalError, http1: .unavailable) { _, responder in
      await responder.reset(code: 2)
    }
  }

  func testResetBehindTheHead() async throws {
    try await self.expectLost(.internalError, http1: .unavailable) { request, responder in
      try await responder.sendHead(headers: Self.headers(for: request, length: 100))
      await responder.reset(code: 2)
    }
  }

  func testResetInTheBody() async throws {
    try await self.expectLost(.internalError, http1: .unavailable) { request, responder in
      try await responder.sendHead(headers: Self.headers(for: request, length: 100))
      try await responder.sendBody([0, 0, 0, 0, 80, 1, 2, 3])
      await responder.reset(code: 2)
    }
  }

  private static func headers(for request: RawRequest, length: Int) -> HeaderFields {
    ["content-type": request.record.headers.first("content-type") ?? "", "content-length": "\(length)"]
  }

  /// Expects a unary call and a stream to fail when they are handled so, and the next call to work.
  private func expectLost(
    _ code: Code,
    http1: Code? = nil,
    line: UInt = #line,
    _ handler: @escaping LoopbackServer.RawHandler
  ) async throws {
    for version in Version.allCases {
      try await EmbeddedServer.run(version) { embedded in
        embedded.server.onRaw("/broken") { request, responder in
          _ = try await request.body()
          try await handler(request, responder)
        }
        let expected = ExpectedError(version == .http1 ? http1 ?? code : code)
        let (client, what) = (embedded.client, version.rawValue)
        try await client.expectFailure(unaryMethod("/broken"), expected, what, line: line)
        try await client.expectStreamFailure(streamMethod("/broken"), expected, what, line: line)
        let response = await client.unary(TestMethods.echo, EchoRequest())
        XCTAssertEqual(response.code, .ok, "after it, \(what): \(response)", line: line)
        // Nothing was sent twice.
        XCTAssertEqual(embedded.server.journal.snapshot.requests(to: "/broken").count, 4, what, line: line)
      }
    }
  }

  /// A TCP reset, at the point where HTTP/1.1 waits for the response.
  func testTCPReset() async throws {
    let server = try await RawServer.start { connection in
      _ = try await connection.receive()
      try await connection.abort()
    }
    for version in Version.allCases {
      try await withPlainClient(version, host: server.url) { client in
        try await client.expectFailure(TestMethods.echo, ExpectedError(.unavailable), version.rawValue)
        try await client.expectStreamFailure(TestMethods.count, ExpectedError(.unavailable), version.rawValue)
      }
    }
    await server.stop()
  }

  /// HTTP/1.1 in which the connection ends before a body of a known length, or chunks, are whole.
  func testTruncatedHTTP1() async throws {
    let responses = [
      "HTTP/1.1 200 OK\r\ncontent-ty",
      "HTTP/1.1 200 OK\r\ncontent-type: application/proto\r\ncontent-length: 10\r\n\r\n12345",
      "HTTP/1.1 200 OK\r\ncontent-type: application/proto\r\n"
        + "transfer-encoding: chunked\r\n\r\n5\r\n12345\r\n",
    ]
    for response in responses {
      let server = try await RawServer.start { connection in
        _ = try await connection.receive(until: "\r\n\r\n")
        try await connection.send(response)
      }
      try await withPlainClient(.http1, host: server.url) { client in
        try await client.expectFailure(TestMethods.echo, ExpectedError(.unavailable, "lost"), response)
      }
      await server.stop()
    }
  }

  /// Neither the client's memory nor its patience is used up by a head without end.
  func testHeadersWithoutEnd() async throws {
    let server = try await RawServer.start { connection in
      _ = try await connection.receive(until: "\r\n\r\n")
      try await connection.send("HTTP/1.1 200 OK\r\n")
      while true { try await connection.send("x-filler: \(String(repeating: "x", count: 1000))\r\n") }
    }
    try await withPlainClient(.http1, host: server.url) { client in
      try await client.expectFailure(TestMethods.echo, ExpectedError(.resourceExhausted, "limit"), "headers")
    }
    await server.stop()
  }

  // MARK: A server that dies

  func testServerKilledDuringAStream() async throws {
    for version in Version.allCases {
      let first = try await PythonServer.start(.connect)
      let port = try first.port("http")
      try await withPlainClient(version, host: "http://127.0.0.1:\(port)") { client in
        let results = Recorder<StreamResult<CountResponse>>()
        let request = CountRequest.with {
          $0.instruction.messageCount = 1_000_000
          $0.instruction.messageDelayMs = 5
        }
        client.serverStream(TestMethods.count, request) { results.record($0) }
        try await results.wait(for: 3)
        first.kill()
        let outcome = try await results.outcome()
        XCTAssertEqual(
          outcome.code,
          .unavailable,
          "\(version.rawValue): \(String(describing: outcome.error))"
        )
        XCTAssertGreaterThanOrEqual(outcome.messages.count, 2, version.rawValue)
        let refused = await client.unary(TestMethods.echo, EchoRequest())
        XCTAssertEqual(refused.code, .unavailable, version.rawValue)

        let second = try await PythonServer.start(.connect, port: port)
        // Until the client tries again, calls fail at once that do not wait for that.
        let response = await client.unary(
          TestMethods.echo,
          .with { $0.payload.text = "again" },
          options: CallOptions(waitForReady: true)
        )
        XCTAssertEqual(response.message?.payload.text, "again", "\(version.rawValue): \(response)")
        XCTAssertEqual(StreamOutcome(results.values).ends.count, 1, version.rawValue)
        await second.stop()
      }
    }
  }
}
