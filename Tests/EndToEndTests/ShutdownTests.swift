internal import Connect
internal import ConnectNIO
internal import LoopbackServer
internal import SwiftProtobuf
import XCTest

/// `shutdown()` lets calls under way finish, refuses new ones, and closes everything.
final class ShutdownTests: XCTestCase {
  /// A server whose `/held` answers when it is told to.
  private func run(
    _ version: Version,
    _ body: (EmbeddedServer, _ release: Counter) async throws -> Void
  ) async throws {
    let release = Counter()
    try await EmbeddedServer.run(version) { embedded in
      embedded.server.onRaw("/held") { request, responder in
        _ = try await request.body()
        while release.value == 0 { try await responder.sleep(.milliseconds(2)) }
        try await responder.respond(headers: ["content-type": "application/proto"])
      }
      try await body(embedded, release)
    }
  }

  func testCallsUnderWayFinish() async throws {
    for version in Version.allCases {
      try await self.run(version) { embedded, release in
        let client = embedded.client
        let responses = Recorder<ResponseMessage<EchoResponse>>()
        for _ in 0..<5 { client.unary(unaryMethod("/held"), EchoRequest()) { responses.record($0) } }
        let slow = CountRequest.with {
          $0.instruction.messageCount = 10
          $0.instruction.messageDelayMs = 20
        }
        let results = Recorder<StreamResult<CountResponse>>()
        client.serverStream(TestMethods.count, slow) { results.record($0) }
        try await embedded.server.journal.wait { $0.requests.count == 6 }

        let httpClient = embedded.httpClient
        let end = Task { await httpClient.shutdown() }
        // A new call is refused as soon as the shutdown has begun.
        var refused: ConnectError?
        while refused == nil { refused = await client.unary(TestMethods.echo, EchoRequest()).error }
        ExpectedError(.unavailable, "shut down").check(refused, version.rawValue)
        let outcome = await client.serverStream(TestMethods.count, CountRequest()).results.collect()
        ExpectedError(.unavailable, "shut down").check(outcome.error, version.rawValue)
        XCTAssertEqual(responses.values.count, 0, version.rawValue)

        release.increment()
        try await responses.wait(for: 5)
        XCTAssertEqual(responses.values.map(\.code), Array(repeating: .ok, count: 5), version.rawValue)
        let counted = try await results.outcome()
        XCTAssertEqual(counted.code, .ok, "\(version.rawValue): \(counted)")
        XCTAssertEqual(counted.messages.count, 10, version.rawValue)
        try await bounded("the end of the shutdown") { await end.value }
        try await embedded.server.journal.wait { $0.openConnections == 0 }
        XCTAssertEqual(embedded.server.journal.snapshot.resetCount, 0, version.rawValue)
      }
    }
  }

  /// A time limit: what has not finished then fails, once.
  func testTimeLimit() async throws {
    for version in Version.allCases {
      try await self.run(version) { embedded, _ in
        let responses = Recorder<ResponseMessage<EchoResponse>>()
        embedded.client.unary(unaryMethod("/held"), EchoRequest()) { responses.record($0) }
        let stream = embedded.client.bidirectionalStream(TestMethods.converse)
        try await stream.send(ConverseRequest())
        try await embedded.server.journal.wait { $0.requests.count == 2 }
        let httpClient = embedded.httpClient
        try await bounded("a shutdown with a limit") { await httpClient.shutdown(within: .milliseconds(100)) }
        try await responses.wait(for: 1)
        ExpectedError(.unavailable, "shut down").check(responses.values[0].error, version.rawValue)
        let outcome = await stream.results.collect()
        XCTAssertEqual(outcome.code, .unavailable, "\(version.rawValue): \(outcome)")
        XCTAssertEqual(responses.values.count, 1, version.rawValue)
        try await embedded.server.journal.wait { $0.openConnections == 0 }
      }
    }
  }

  /// Calls that wait for a connection finish as well.
  func testWaitingCallsFinish() async throws {
    try await EmbeddedServer.run(.http1, configure: { http, _ in http.limits.http1ConnectionsPerAddress = 1 })
    { embedded in
      let responses = Recorder<ResponseMessage<EchoResponse>>()
      for _ in 0..<10 {
        embedded.client.unary(TestMethods.echo, .with { $0.instruction.delayMs = 10 }) {
          responses.record($0)
        }
      }
      _ = try await embedded.server.request(to: TestMethods.echo.path)
      let httpClient = embedded.httpClient
      try await bounded("the shutdown") { await httpClient.shutdown() }
      XCTAssertEqual(responses.values.map(\.code), Array(repeating: .ok, count: 10))
    }
  }

  func testOfAClientThatDidNothing() async throws {
    let httpClient = NIOHTTPClient()
    try await shutDown(httpClient)
    try await shutDown(httpClient)
    let client = ProtocolClient(httpClient: httpClient, config: .forTests(host: "http://127.0.0.1:1"))
    try await client.expectFailure(TestMethods.echo, ExpectedError(.unavailable, "shut down"), "after it")
  }

  func testTwoAtOnce() async throws {
    for version in Version.allCases {
      try await self.run(version) { embedded, release in
        let responses = Recorder<ResponseMessage<EchoResponse>>()
        embedded.client.unary(unaryMethod("/held"), EchoRequest()) { responses.record($0) }
        _ = try await embedded.server.request(to: "/held")
        let httpClient = embedded.httpClient
        let ends = (0..<2).map { _ in Task { await httpClient.shutdown() } }
        release.increment()
        for end in ends { try await bounded("the shutdown") { await end.value } }
        XCTAssertEqual(responses.values.map(\.code), [.ok], version.rawValue)
      }
    }
  }

  /// Cancelling what is left ends a shutdown, too.
  func testCancellingTheLastCall() async throws {
    for version in Version.allCases {
      try await self.run(version) { embedded, _ in
        let responses = Recorder<ResponseMessage<EchoResponse>>()
        let call = embedded.client.unary(unaryMethod("/held"), EchoRequest()) { responses.record($0) }
        _ = try await embedded.server.request(to: "/held")
        let httpClient = embedded.httpClient
        let end = Task { await httpClient.shutdown() }
        call.cancel()
        try await bounded("the shutdown") { await end.value }
        XCTAssertEqual(responses.values.map(\.code), [.canceled], version.rawValue)
      }
    }
  }

  /// A client that is dropped closes its connections.
  func testDroppingTheClient() async throws {
    for version in Version.allCases {
      let server = try await LoopbackServer.start()
      do {
        let client = ProtocolClient(
          httpClient: NIOHTTPClient(configuration: version.configuration),
          config: .forTests(host: server.url)
        )
        let response = await client.unary(TestMethods.echo, EchoRequest())
        XCTAssertEqual(response.code, .ok, version.rawValue)
      }
      try await server.journal.wait { $0.openConnections == 0 }
      await server.stop()
    }
  }
}
