import Connect
import ConnectNIO
import LoopbackServer
import NIOCore
import Synchronization
import XCTest

/// The pool with HTTP/2 connections, against a server of another engine.
final class HTTP2PoolTests: XCTestCase {
  private func start(maxConcurrentStreams: Int = 100) async throws -> LoopbackServer {
    var configuration = LoopbackServer.Configuration.plaintext
    configuration.http2.maxConcurrentStreams = maxConcurrentStreams
    return try await LoopbackServer.start(configuration)
  }

  private func client(_ server: LoopbackServer, connections: Int = 4) throws -> TestClient {
    try TestClient(
      Origin(scheme: .http, host: "127.0.0.1", port: server.port),
      .init(version: .http2Only, limits: .init(http2ConnectionsPerAddress: connections))
    )
  }

  func testManyCallsOnOneConnection() async throws {
    let server = try await self.start(maxConcurrentStreams: 10)
    server.onRaw("/test") { request, responder in
      try await responder.respond(body: try await request.body())
    }
    let client = try self.client(server, connections: 1)
    let calls = (0..<500).map { index in
      client.call().start(body: .complete(ByteBuffer(string: "\(index)")))
    }
    for (index, call) in calls.enumerated() {
      let text = try await call.response().text
      XCTAssertEqual(text, "\(index)")
    }
    XCTAssertEqual(server.journal.snapshot.acceptedConnections, 1)
    await client.shutdown()
    await server.stop()
  }

  func testAnotherConnectionAtTheStreamLimit() async throws {
    let server = try await self.start(maxConcurrentStreams: 2)
    server.onRaw("/test") { _, responder in await responder.waitUntilClosed() }
    server.onRaw("/quick") { _, responder in try await responder.respond(text: "ok") }
    let client = try self.client(server, connections: 3)
    let calls = (0..<6).map { _ in client.call().start() }
    for call in calls { try await call.hasStarted() }
    XCTAssertEqual(server.journal.snapshot.acceptedConnections, 3)
    // All streams are taken. This one waits until another has gone.
    let waiting = client.call().start(.post, "/quick")
    calls[3].cancel()
    let text = try await waiting.response().text
    XCTAssertEqual(text, "ok")
    XCTAssertEqual(server.journal.snapshot.acceptedConnections, 3)
    for call in calls { call.cancel() }
    await client.shutdown()
    await server.stop()
  }

  func testGoAwayMovesNewCallsToAnotherConnection() async throws {
    let server = try await self.start()
    server.onRaw("/test") { [journal = server.journal] _, responder in
      // In this order: whoever has the head knows of GOAWAY.
      try await responder.goAway()
      try await responder.sendHead()
      // Goes on after GOAWAY until the other call has been served.
      try await journal.wait { $0.requests(to: "/quick").contains { $0.outcome != nil } }
      try await responder.sendBody("old")
      try await responder.finish()
    }
    server.onRaw("/quick") { _, responder in try await responder.respond(text: "new") }
    let client = try self.client(server, connections: 1)
    let old = client.call().start()
    try await old.hasHead()
    let new = try await client.call().start(.post, "/quick").response().text
    XCTAssertEqual(new, "new")
    let text = try await old.response().text
    XCTAssertEqual(text, "old")
    XCTAssertEqual(server.journal.snapshot.acceptedConnections, 2)
    await client.shutdown()
    try await server.journal.wait { $0.openConnections == 0 }
    await server.stop()
  }

  /// The response and GOAWAY come in one read, and the caller starts the next call as soon as it hears of the
  /// response: the pool must know by then that the connection takes no more.
  func testACallStartedByTheLastResponseOfAConnection() async throws {
    let server = try await RawServer { connection in
      while let frame = connection.takeFrame() {
        switch frame.kind {
        case .settings where !frame.isAck:
          connection.send(.settings(), .settingsAck)
        case .headers:
          connection.send(
            .headers(frame.streamID),
            .data(frame.streamID, "\(connection.index)", end: true),
            .goAway(last: frame.streamID)
          )
        default:
          break
        }
      }
    }
    let client = try TestClient(
      Origin(scheme: .http, host: "127.0.0.1", port: server.port),
      .init(version: .http2Only, limits: .init(http2ConnectionsPerAddress: 1))
    )
    let second = client.call()
    let first = client.call().onEnd { second.start() }
    let texts = [try await first.start().response().text, try await second.response().text]
    XCTAssertEqual(texts, ["0", "1"])
    // As the second GOAWAY comes while a call is under way, the next connection is opened, unless the client is shut down first.
    XCTAssertLessThanOrEqual(server.accepted, 3)
    await client.shutdown()
    await server.close()
  }

  func testServerThatSendsNoSettings() async throws {
    let server = try await RawServer { _ in }
    let client = try TestClient(
      Origin(scheme: .http, host: "127.0.0.1", port: server.port),
      .init(version: .http2Only, timeouts: .init(connect: .milliseconds(50)))
    )
    let failure = try await client.call().start().failure()
    XCTAssertEqual(failure.error.code, .unavailable)
    XCTAssertTrue(failure.error.message?.contains("settings") == true, "\(failure.error)")
    try await eventually("closed") { server.open == 0 }
    await client.shutdown()
    await server.close()
  }

  func testServerThatSpeaksHTTP1() async throws {
    let server = try await RawServer { connection in
      connection.send("HTTP/1.1 400 Bad Request\r\n\r\n")
      connection.close()
    }
    let client = try TestClient(
      Origin(scheme: .http, host: "127.0.0.1", port: server.port),
      .init(version: .http2Only)
    )
    let failure = try await client.call().start().failure()
    XCTAssertEqual(failure.error.code, .unavailable)
    XCTAssertTrue(failure.error.message?.contains("does not speak HTTP/2") == true, "\(failure.error)")
    await client.shutdown()
    await server.close()
  }

  func testShutdownSaysGoodbye() async throws {
    let server = try await self.start()
    server.onRaw("/test") { _, responder in
      try await responder.sendHead()
      await responder.waitUntilClosed()
    }
    let client = try self.client(server)
    let call = client.call().start()
    try await call.hasHead()
    await client.client.shutdown(within: .milliseconds(20))
    let failure = try await call.failure()
    XCTAssertEqual(failure.error.code, .unavailable, "\(failure.error)")
    try await server.journal.wait { $0.openConnections == 0 }
    await server.stop()
  }

  func testDroppedClientClosesItsConnections() async throws {
    let server = try await self.start()
    server.onRaw("/test") { _, responder in try await responder.respond(text: "ok") }
    weak var dropped: (any HTTPEndpoint)?
    func use() async throws {
      let client = try self.client(server)
      _ = try await client.call().start().response()
      dropped = client.endpoint
    }
    try await use()
    try await server.journal.wait { $0.openConnections == 0 }
    try await eventually("freed") { dropped == nil }
    await server.stop()
  }
}
