internal import LoopbackServer
internal import NIOCore
import XCTest

/// The embedded server keeps its promises to the tests that rely on it.
final class LoopbackServerTests: XCTestCase {
  private let service = "/connect.test.v1.TestService"

  func testUnaryEcho() async throws {
    let server = try await LoopbackServer.start()
    let answer = try await PlainConnection.post(
      port: server.port,
      "\(self.service)/Echo",
      headers: ["connect-timeout-ms: 5000"],
      json: #"{"payload":{"text":"ß"},"instruction":{"trailers":[{"name":"x-a","values":["1","2, 3"]}]}}"#
    )
    XCTAssertTrue(answer.hasPrefix("HTTP/1.1 200"), answer)
    XCTAssertTrue(answer.contains("trailer-x-a: 1\r\ntrailer-x-a: 2, 3\r\n"), answer)
    XCTAssertTrue(answer.contains(#""text":"ß""#), answer)
    XCTAssertTrue(answer.contains(#""timeoutMs":"5000""#), answer)
    let record = try await server.endedRequest(to: "\(self.service)/Echo")
    XCTAssertEqual(record.outcome, .completed)
    XCTAssertEqual(record.version, .http1)
    XCTAssertEqual(record.headers["Content-Type"], ["application/json"])
    await server.stop()
  }

  func testUnaryFailureWithDetails() async throws {
    let server = try await LoopbackServer.start()
    let answer = try await PlainConnection.post(
      port: server.port,
      "\(self.service)/Echo",
      json: """
        {"instruction": {"failure": {"code": "CODE_ABORTED", "message": "no",
          "details": [{"@type": "type.googleapis.com/connect.test.v1.ErrorInfo", "reason": "r"}]}}}
        """
    )
    XCTAssertTrue(answer.hasPrefix("HTTP/1.1 409"), answer)
    XCTAssertTrue(answer.contains(#""code":"aborted""#), answer)
    XCTAssertTrue(answer.contains(#"{"type":"connect.test.v1.ErrorInfo","value":"CgFy"}"#), answer)
    await server.stop()
  }

  func testDeadline() async throws {
    let server = try await LoopbackServer.start()
    let answer = try await PlainConnection.post(
      port: server.port,
      "\(self.service)/Echo",
      headers: ["connect-timeout-ms: 50"],
      json: #"{"instruction":{"delayMs":60000}}"#
    )
    XCTAssertTrue(answer.hasPrefix("HTTP/1.1 504"), answer)
    XCTAssertTrue(answer.contains(#""code":"deadline_exceeded""#), answer)
    await server.stop()
  }

  func testStreamWithFailureAfterMessages() async throws {
    let server = try await LoopbackServer.start()
    let request = """
      {"from": 7, "instruction": {"messageCount": 5, "trailers": [{"name": "x-a", "values": ["1"]}],
        "failure": {"code": "CODE_DATA_LOSS", "message": "no", "afterMessages": 2}}}
      """
    let answer = try await PlainConnection.post(
      port: server.port,
      "\(self.service)/Count",
      contentType: "application/connect+json",
      body: ByteBuffer(envelope: ByteBuffer(string: request), flags: 0)
    )
    XCTAssertTrue(answer.hasPrefix("HTTP/1.1 200"), answer)
    XCTAssertTrue(answer.contains(#""number":"7""#), answer)
    XCTAssertTrue(answer.contains(#""number":"8""#), answer)
    XCTAssertFalse(answer.contains(#""number":"9""#), answer)
    XCTAssertTrue(answer.contains(#""code":"data_loss""#), answer)
    XCTAssertTrue(answer.contains(#""metadata":{"x-a":["1"]}"#), answer)
    await server.stop()
  }

  func testHTTP2OnTheSamePort() async throws {
    let server = try await LoopbackServer.start()
    let type = try await PlainConnection.firstFrameType(port: server.port)
    XCTAssertEqual(type, 4, "SETTINGS")
    await server.stop()
  }

  func testRawHandler() async throws {
    let server = try await LoopbackServer.start()
    server.onRaw("/raw") { request, responder in
      let body = try await request.body()
      try await responder.respond(
        status: 503,
        headers: ["x-a": "1", "x-a": "2"],
        body: body,
        trailers: ["x-t": "\(request.attempt)"]
      )
    }
    for attempt in 0..<2 {
      let answer = try await PlainConnection.post(port: server.port, "/raw", json: "hello")
      XCTAssertTrue(answer.hasPrefix("HTTP/1.1 503"), answer)
      XCTAssertTrue(answer.contains("x-a: 1\r\nx-a: 2\r\n"), answer)
      XCTAssertTrue(answer.contains("hello"), answer)
      XCTAssertTrue(answer.contains("x-t: \(attempt)"), answer)
    }
    XCTAssertEqual(server.requests.count, 2)
    await server.stop()
  }

  func testClientThatLeavesIsNoticed() async throws {
    let server = try await LoopbackServer.start()
    server.onRaw("/never") { _, responder in await responder.waitUntilClosed() }
    let port = server.port
    let client = Task { try await PlainConnection.post(port: port, "/never", json: "{}") }
    let record = try await server.request(to: "/never")
    XCTAssertNil(record.outcome)
    client.cancel()
    let ended = try await server.endedRequest(to: "/never")
    XCTAssertEqual(ended.outcome, .connectionClosed)
    try await server.journal.wait { $0.openConnections == 0 }
    await server.stop()
  }

  func testFloodWaitsForTheClient() async throws {
    let server = try await LoopbackServer.start()
    let total = 256 << 20
    let request = ByteBuffer(envelope: ByteBuffer(string: #"{"totalBytes":"\#(total)"}"#), flags: 0)
    var head = ByteBuffer(
      string: "POST \(self.service)/Flood HTTP/1.1\r\nhost: localhost\r\n"
        + "content-type: application/connect+json\r\ncontent-length: \(request.readableBytes)\r\n\r\n"
    )
    head.writeImmutableBuffer(request)
    // Reads the first bytes and then no more, but stays.
    let (port, bytes) = (server.port, head)
    let client = Task {
      try await PlainConnection.exchange(port: port, bytes) { _ in
        try? await Task.sleep(for: .seconds(60))
        return true
      }
    }
    _ = try await server.request(to: "\(self.service)/Flood")
    var written = [-1, 0]
    for _ in 0..<100 where written[0] != written[1] || written[1] == 0 {
      try await Task.sleep(for: .milliseconds(100))
      written = [written[1], server.requests[0].bytesWritten]
    }
    XCTAssertEqual(written[0], written[1], "the server goes on writing")
    XCTAssertLessThan(written[1], total / 4)
    XCTAssertNil(server.requests[0].outcome)
    client.cancel()
    let record = try await server.endedRequest(to: "\(self.service)/Flood")
    XCTAssertEqual(record.outcome, .connectionClosed)
    await server.stop()
  }

  func testRawServer() async throws {
    let server = try await RawServer.start { connection in
      let request = try await connection.receive(until: "\r\n\r\n")
      XCTAssertTrue(String(buffer: request).hasPrefix("POST /x"))
      try await connection.send("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf")
    }
    let answer = try await PlainConnection.post(port: server.port, "/x", json: "{}")
    XCTAssertTrue(answer.hasSuffix("\r\n\r\nhalf"), answer)
    XCTAssertEqual(server.acceptedConnections, 1)
    await server.stop()
  }

  func testCertificates() async throws {
    let certificates = try await TestCertificates.make()
    let server = try await LoopbackServer.start(.tls(certificates))
    XCTAssertEqual(server.url, "https://localhost:\(server.port)")
    XCTAssertTrue(certificates.clientCertificatePEM.hasPrefix("-----BEGIN CERTIFICATE-----"))
    await server.stop()
  }

  func testStopFreesTheAddress() async throws {
    let path = "\(NSTemporaryDirectory())loopback-\(ProcessInfo.processInfo.processIdentifier).sock"
    let server = try await LoopbackServer.start(.unixSocket(path))
    XCTAssertTrue(FileManager.default.fileExists(atPath: path))
    await server.stop()
    XCTAssertFalse(FileManager.default.fileExists(atPath: path))
  }
}
