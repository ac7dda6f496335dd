internal import Connect
internal import ConnectNIO
internal import LoopbackServer
internal import SwiftProtobuf
import XCTest

/// Connections are used again while they work, replaced when they do not, and not reset without need.
final class ConnectionTests: XCTestCase {
  // MARK: Reuse

  func testCallsInSequenceUseOneConnection() async throws {
    for version in Version.allCases {
      try await EmbeddedServer.run(version) { embedded in
        for _ in 0..<20 { try await makeOneOfEach(embedded.client, version) }
        let snapshot = embedded.server.journal.snapshot
        XCTAssertEqual(snapshot.acceptedConnections, 1, version.rawValue)
        XCTAssertEqual(snapshot.requests.count, 80, version.rawValue)
      }
    }
  }

  /// Errors of the server are no reason for a new connection.
  func testFailedCallsKeepTheConnection() async throws {
    for version in Version.allCases {
      try await EmbeddedServer.run(version) { embedded in
        for _ in 0..<10 {
          let unary = await embedded.client.unary(
            TestMethods.echo,
            .with { $0.instruction.failure.code = .notFound }
          )
          XCTAssertEqual(unary.code, .notFound, version.rawValue)
          let request = CountRequest.with { $0.instruction.failure.code = .notFound }
          let stream = await embedded.client.serverStream(TestMethods.count, request).results.collect()
          XCTAssertEqual(stream.code, .notFound, version.rawValue)
          let missing = await embedded.client.unary(unaryMethod("/missing"), EchoRequest())
          XCTAssertEqual(missing.code, .unimplemented, version.rawValue)
        }
        XCTAssertEqual(embedded.server.journal.snapshot.acceptedConnections, 1, version.rawValue)
        XCTAssertEqual(embedded.server.journal.snapshot.resetCount, 0, version.rawValue)
      }
    }
  }

  func testClientsOfOneTransportShareConnections() async throws {
    for version in Version.allCases {
      try await EmbeddedServer.run(version) { embedded in
        for coding in Coding.allCases {
          let config = ProtocolClientConfig.forTests(host: embedded.server.url, coding: coding)
          let client = ProtocolClient(httpClient: embedded.httpClient, config: config)
          let response = await client.unary(TestMethods.echo, EchoRequest())
          XCTAssertEqual(response.code, .ok, version.rawValue)
        }
        XCTAssertEqual(embedded.server.journal.snapshot.acceptedConnections, 1, version.rawValue)
      }
    }
  }

  // MARK: Replacement

  func testCallAfterTheServerClosedAnIdleConnection() async throws {
    for version in Version.allCases {
      try await EmbeddedServer.run(version) { embedded in
        for count in 1...10 {
          try await makeOneOfEach(embedded.client, version)
          XCTAssertEqual(embedded.server.journal.snapshot.acceptedConnections, count, version.rawValue)
          await embedded.server.closeConnections()
          try await embedded.server.journal.wait { $0.openConnections == 0 }
          // A call that meets the end on its way may rightly fail.
          try await embedded.letClientReadItsSockets()
        }
      }
    }
  }

  func testIdleTimeout() async throws {
    for version in Version.allCases {
      try await EmbeddedServer.run(version, configure: { http, _ in http.timeouts.idle = .milliseconds(50) })
      { embedded in
        for count in 1...3 {
          try await makeOneOfEach(embedded.client, version)
          try await embedded.server.journal.wait { $0.openConnections == 0 }
          XCTAssertLessThanOrEqual(
            embedded.server.journal.snapshot.acceptedConnections,
            4 * count,
            version.rawValue
          )
        }
      }
    }
  }

  /// `connection: close` is heeded.
  func testServerThatClosesEachConnection() async throws {
    try await EmbeddedServer.run(.http1) { embedded in
      embedded.server.onRaw("/close") { request, responder in
        _ = try await request.body()
        try await responder.respond(headers: ["content-type": "application/proto", "connection": "close"])
        await responder.closeConnection()
      }
      for _ in 0..<10 {
        let response = await embedded.client.unary(unaryMethod("/close"), EchoRequest())
        XCTAssertEqual(response.code, .ok, "\(response)")
      }
      XCTAssertEqual(embedded.server.journal.snapshot.acceptedConnections, 10)
    }
  }

  // MARK: No needless resets

  /// 1,000 calls of each kind; where the server finishes a stream first, the client has nothing to add.
  func testNoResetsOnHTTP2() async throws {
    try await EmbeddedServer.run(.http2) { embedded in
      let client = embedded.client
      for _ in 0..<1000 { try await makeOneOfEach(client, .http2) }
      try await embedded.server.journal.wait { $0.requests.allSatisfy { $0.outcome != nil } }
      let snapshot = embedded.server.journal.snapshot
      XCTAssertEqual(snapshot.requests.count, 4000)
      XCTAssertEqual(snapshot.resetCount, 0)
      XCTAssertEqual(snapshot.acceptedConnections, 1)
      XCTAssertTrue(snapshot.requests.allSatisfy { $0.outcome == .completed && $0.isRequestComplete })
    }
  }

  /// The same at once, with callbacks: ends, requests and cancellations of what is over cross on the wire.
  func testNoResetsOnHTTP2WhenCallsOverlap() async throws {
    try await EmbeddedServer.run(.http2) { embedded in
      let client = embedded.client
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<50 {
          group.addTask { for _ in 0..<5 { try await makeOneOfEach(client, .http2) } }
        }
        try await group.waitForAll()
      }
      let snapshot = embedded.server.journal.snapshot
      XCTAssertEqual(snapshot.requests.count, 1000)
      XCTAssertEqual(snapshot.resetCount, 0)
    }
  }

  /// A server that finishes while the client still has messages to send: its status counts, and only then is
  /// there a reset.
  func testServerThatFinishesFirst() async throws {
    for version in Version.allCases {
      try await EmbeddedServer.run(version) { embedded in
        let stream = embedded.client.clientStream(TestMethods.sum)
        for number in 1...3 {
          try await stream.send(
            .with {
              $0.number = Int64(number)
              $0.instruction.finishAfter = 3
            }
          )
        }
        _ = try await embedded.server.endedRequest(to: TestMethods.sum.path)
        let response = await stream.closeAndReceive()
        XCTAssertEqual(response.message?.sum, 6, "\(version.rawValue): \(response)")
        let next = await embedded.client.unary(TestMethods.echo, EchoRequest())
        XCTAssertEqual(next.code, .ok, version.rawValue)
      }
    }
  }
}

/// Makes one call of each kind and checks their results.
private func makeOneOfEach(_ client: ProtocolClient, _ version: Version) async throws {
  let unary = await client.unary(TestMethods.echo, .with { $0.payload.text = "x" })
  XCTAssertEqual(unary.message?.payload.text, "x", "\(version.rawValue): \(unary)")

  let count = await client.serverStream(TestMethods.count, .with { $0.instruction.messageCount = 2 })
    .results.collect()
  XCTAssertEqual(count.messages.count, 2, "\(version.rawValue): \(count)")

  let sum = client.clientStream(TestMethods.sum)
  try await sum.send(.with { $0.number = 1 })
  try await sum.send(.with { $0.number = 2 })
  let summed = await sum.closeAndReceive()
  XCTAssertEqual(summed.message?.sum, 3, "\(version.rawValue): \(summed)")

  let converse = client.bidirectionalStream(TestMethods.converse)
  var answers = converse.messages.makeAsyncIterator()
  try await converse.send(.with { $0.payload.text = "y" })
  if version == .http2 {
    let answer = try await answers.next()
    XCTAssertEqual(answer?.payload.text, "y")
  }
  converse.finish()
  var rest = 0
  while try await answers.next() != nil { rest += 1 }
  XCTAssertEqual(rest, version == .http2 ? 0 : 1, version.rawValue)
}
