internal import Connect
internal import LoopbackServer
internal import SwiftProtobuf
import XCTest

/// Cancelling reaches the server: RST_STREAM(CANCEL) over HTTP/2, the connection's end over HTTP/1.1.
final class CancellationTests: XCTestCase {
  private let endless = CountRequest.with {
    $0.instruction.messageCount = 1_000_000
    $0.instruction.messageDelayMs = 5
  }

  /// Runs `body`, and expects that the server sees one call to `path` given up.
  private func expectGivenUp(
    _ path: String,
    _ body: @Sendable (ProtocolClient, LoopbackServer) async throws -> Void
  ) async throws {
    for version in Version.allCases {
      try await EmbeddedServer.run(version) { embedded in
        embedded.server.onRaw("/never") { _, responder in await responder.waitUntilClosed() }
        try await body(embedded.client, embedded.server)
        let record = try await embedded.server.endedRequest(to: path)
        XCTAssertEqual(record.outcome, EmbeddedServer.givenUp(version), version.rawValue)
        // The client is as good as new.
        let response = await embedded.client.unary(TestMethods.echo, EchoRequest())
        XCTAssertEqual(response.code, .ok, version.rawValue)
        let snapshot = embedded.server.journal.snapshot
        XCTAssertEqual(snapshot.acceptedConnections, version == .http1 ? 2 : 1, version.rawValue)
      }
    }
  }

  // MARK: Unary

  func testCancellingTheTaskOfAUnaryCall() async throws {
    try await self.expectGivenUp("/never") { client, server in
      let task = Task { await client.unary(unaryMethod("/never"), EchoRequest()) }
      _ = try await server.request(to: "/never")
      task.cancel()
      let response = await task.value
      XCTAssertEqual(response.code, .canceled)
    }
  }

  func testCancellingTheHandleOfAUnaryCall() async throws {
    try await self.expectGivenUp("/never") { client, server in
      let responses = Recorder<ResponseMessage<EchoResponse>>()
      let handle = client.unary(unaryMethod("/never"), EchoRequest()) { responses.record($0) }
      _ = try await server.request(to: "/never")
      handle.cancel()
      let responsesCode = try await responses.wait(for: 1)[0].code
      XCTAssertEqual(responsesCode, .canceled)
    }
  }

  /// Nothing is sent: a call made later is the first that the server sees.
  func testACallInACancelledTask() async throws {
    for version in Version.allCases {
      try await EmbeddedServer.run(version) { embedded in
        let client = embedded.client
        let task = Task {
          withUnsafeCurrentTask { $0?.cancel() }
          let response = await client.unary(TestMethods.echo, EchoRequest())
          let outcome = await client.serverStream(TestMethods.count, CountRequest()).results.collect()
          let sum = await client.clientStream(TestMethods.sum).closeAndReceive()
          return [response.code, outcome.code, sum.code]
        }
        let codes = await task.value
        XCTAssertEqual(codes, [.canceled, .canceled, .canceled], version.rawValue)
        XCTAssertEqual(embedded.server.requests.map(\.path), [], version.rawValue)
        let lookup = await client.unary(TestMethods.lookup, .with { $0.key = "later" })
        XCTAssertEqual(lookup.code, .ok, version.rawValue)
        XCTAssertEqual(embedded.server.requests.map(\.path), [TestMethods.lookup.path], version.rawValue)
        XCTAssertEqual(embedded.server.journal.snapshot.resetCount, 0, version.rawValue)
      }
    }
  }

  // MARK: Streams

  func testCancellingAStream() async throws {
    let endless = self.endless
    try await self.expectGivenUp(TestMethods.count.path) { client, _ in
      let stream = client.serverStream(TestMethods.count, endless)
      var results: [StreamResult<CountResponse>] = []
      for await result in stream.results {
        results.append(result)
        if results.count == 3 { stream.cancel() }
      }
      XCTAssertEqual(StreamOutcome(results).code, .canceled)
    }
  }

  func testCancellingTheTaskThatReads() async throws {
    let endless = self.endless
    try await self.expectGivenUp(TestMethods.count.path) { client, _ in
      let seen = Counter()
      let task = Task {
        let stream = client.serverStream(TestMethods.count, endless)
        for try await _ in stream.messages { seen.increment() }
      }
      try await eventually("a message") { seen.value > 0 }
      task.cancel()
      do {
        try await task.value
        XCTFail("the sequence ended well")
      } catch {
        XCTAssertEqual((error as? ConnectError)?.code, .canceled, "\(error)")
      }
    }
  }

  func testDroppingAStream() async throws {
    let endless = self.endless
    try await self.expectGivenUp(TestMethods.count.path) { client, server in
      for try await _ in client.serverStream(TestMethods.count, endless).messages { break }
    }
  }

  /// Of a generated client, which gives the messages alone.
  func testDroppingTheShortFormOfAStream() async throws {
    let endless = self.endless
    try await self.expectGivenUp(TestMethods.count.path) { client, _ in
      let service = Connect_Test_V1_TestServiceClient(client: client)
      for try await _ in service.count(endless) { break }
    }
    try await self.expectGivenUp(TestMethods.count.path) { client, server in
      let messages = Connect_Test_V1_TestServiceClient(client: client).count(endless)
      _ = try await server.request(to: TestMethods.count.path)
      withExtendedLifetime(messages) {}
    }
  }

  func testDroppingAStreamThatWasNotRead() async throws {
    let endless = self.endless
    try await self.expectGivenUp(TestMethods.count.path) { client, server in
      let stream = client.serverStream(TestMethods.count, endless)
      _ = try await server.request(to: TestMethods.count.path)
      withExtendedLifetime(stream) {}
    }
  }

  func testCancellingTheHandleOfAStream() async throws {
    let endless = self.endless
    try await self.expectGivenUp(TestMethods.count.path) { client, _ in
      let results = Recorder<StreamResult<CountResponse>>()
      let handle = client.serverStream(TestMethods.count, endless) { results.record($0) }
      try await results.wait(for: 3)
      handle.cancel()
      let outcome = try await results.outcome()
      XCTAssertEqual(outcome.code, .canceled)
    }
  }

  func testCancellingAClientStream() async throws {
    try await self.expectGivenUp(TestMethods.sum.path) { client, server in
      let stream = client.clientStream(TestMethods.sum)
      try await stream.send(.with { $0.number = 1 })
      _ = try await server.request(to: TestMethods.sum.path)
      stream.cancel()
      let response = await stream.closeAndReceive()
      XCTAssertEqual(response.code, .canceled)
      do {
        try await stream.send(SumRequest())
        XCTFail("a message was accepted after the end")
      } catch {
        XCTAssertEqual((error as? ConnectError)?.code, .failedPrecondition)
      }
    }
  }

  func testDroppingAClientStream() async throws {
    try await self.expectGivenUp(TestMethods.sum.path) { client, server in
      let stream = client.clientStream(TestMethods.sum)
      try await stream.send(.with { $0.number = 1 })
      _ = try await server.request(to: TestMethods.sum.path)
    }
  }

  func testCancellingTheTaskThatWaitsForTheResponse() async throws {
    try await self.expectGivenUp("/never") { client, server in
      let method = MethodSpec<SumRequest, SumResponse>(path: "/never", streamType: .clientStream)
      let task = Task { await client.clientStream(method).closeAndReceive() }
      _ = try await server.request(to: "/never")
      task.cancel()
      let response = await task.value
      XCTAssertEqual(response.code, .canceled)
    }
  }

  func testDroppingABidirectionalStream() async throws {
    try await self.expectGivenUp(TestMethods.converse.path) { client, server in
      let stream = client.bidirectionalStream(TestMethods.converse)
      try await stream.send(ConverseRequest())
      _ = try await server.request(to: TestMethods.converse.path)
    }
  }

  /// One that was over already: nothing is reset, nothing changes.
  func testCancellingLate() async throws {
    for version in Version.allCases {
      try await EmbeddedServer.run(version) { embedded in
        for _ in 0..<20 {
          let stream = embedded.client.serverStream(
            TestMethods.count,
            .with { $0.instruction.messageCount = 1 }
          )
          let outcome = await stream.results.collect()
          stream.cancel()
          XCTAssertEqual(outcome.code, .ok, version.rawValue)
        }
        let snapshot = embedded.server.journal.snapshot
        XCTAssertEqual(snapshot.acceptedConnections, 1, version.rawValue)
        XCTAssertTrue(snapshot.requests.allSatisfy { $0.resetCode == nil }, version.rawValue)
      }
    }
  }

  // MARK: Third-party server

  private struct Question: Codable {
    var `case`: String
  }

  private struct Answer: Codable {
    var isSeen: Bool
  }

  /// hypercorn tells its application that the client has left.
  func testSeenByHypercorn() async throws {
    let begun = MethodSpec<Question, Answer>(codablePath: "/begun", streamType: .unary)
    let givenUp = MethodSpec<Question, Answer>(codablePath: "/given-up", streamType: .unary)
    for setting in Setting.all where setting.server == .hypercorn && setting.coding == .json {
      try await setting.withClient { client in
        for kind in ["unary", "stream"] {
          let name = "\(setting), \(kind), \(UUID().uuidString)"
          let options = CallOptions(headers: ["x-case": [name]])
          let results = Recorder<StreamResult<CountResponse>>()
          let responses = Recorder<ResponseMessage<EchoResponse>>()
          if kind == "unary" {
            let request = EchoRequest.with { $0.instruction.delayMs = 50_000 }
            let call = client.unary(TestMethods.echo, request, options: options) { responses.record($0) }
            // The server has to get the call before it can see the end of it.
            let arrival = await client.unary(begun, Question(case: name))
            XCTAssertEqual(arrival.message?.isSeen, true, "\(name): \(String(describing: arrival.error))")
            call.cancel()
            let responsesCode = try await responses.wait(for: 1)[0].code
            XCTAssertEqual(responsesCode, .canceled, name)
          } else {
            let handle = client.serverStream(TestMethods.count, self.endless, options: options) {
              results.record($0)
            }
            try await results.wait(for: 3)
            handle.cancel()
            let outcome = try await results.outcome()
            XCTAssertEqual(outcome.code, .canceled, name)
          }
          let answer = await client.unary(givenUp, Question(case: name))
          XCTAssertEqual(answer.message?.isSeen, true, "\(name): \(String(describing: answer.error))")
        }
      }
    }
  }
}
