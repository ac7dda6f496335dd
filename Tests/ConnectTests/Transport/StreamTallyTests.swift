import Connect
import ConnectTesting
import NIOCore
import Synchronization
import XCTest

/// Each stream of a call ends once for those who count, however it ends.
final class StreamTallyTests: XCTestCase {
  private func call(
    _ scripts: [ScriptedTransport.Script],
    timeout: Duration? = nil,
    _ body: (ProtocolClient, ScriptedTransport) async -> Void
  ) async -> [String] {
    let inner = ScriptedTransport.replying(scripts)
    let transport = CountedTransport(inner)
    var config = ProtocolClientConfig(host: "https://test", codec: JSONCodec())
    config.timeout = timeout
    await body(ProtocolClient(httpClient: transport, config: config), inner)
    inner.virtualExecutor.runUntilIdle()
    return transport.tally.events.withLock { $0 }
  }

  private func unary(_ script: @escaping ScriptedTransport.Script) async -> [String] {
    await self.call([script]) { client, _ in _ = await client.unary(.unary, "x") }
  }

  func testWholeResponses() async {
    let success = await self.unary { $0.reply("\"x\"", headers: ["a": ["b"]]) }
    XCTAssertEqual(success, ["begins", "200 b"])
    let failure = await self.unary { $0.reply(.internalError) }
    XCTAssertEqual(failure, ["begins", "500 -"])
    // What the call makes of the response does not matter.
    let garbage = await self.unary { $0.reply("}") }
    XCTAssertEqual(garbage, ["begins", "200 -"])
  }

  func testTrailers() async {
    let events = await self.unary { stream in
      stream.respond(headers: ["content-type": ["application/json"], "a": ["head"]])
      stream.send(ByteBuffer(string: "\"x\""))
      stream.end(trailers: ["a": ["trailer"]])
    }
    XCTAssertEqual(events, ["begins", "200 head trailer"])
  }

  func testNoResponse() async {
    let lost = await self.unary { $0.fail(ConnectError(code: .unavailable)) }
    XCTAssertEqual(lost, ["begins", "failed"])
    let half = await self.unary { stream in
      stream.respond(headers: ["content-type": ["application/json"]])
      stream.fail(ConnectError(code: .unavailable))
    }
    XCTAssertEqual(half, ["begins", "failed"])
  }

  /// A transparent retry is another stream.
  func testTransparentRetry() async {
    let refuse: ScriptedTransport.Script = { $0.fail(ConnectError(code: .unavailable), isUnprocessed: true) }
    let events = await self.call([refuse, { $0.reply("\"x\"") }]) { client, _ in
      let response = await client.unary(.unary, "x")
      XCTAssertEqual(response.message, "x")
    }
    XCTAssertEqual(events, ["begins", "failed", "begins", "200 -"])
  }

  func testCancellationSaysNothingOfTheServer() async {
    for hasHead in [false, true] {
      let events = await self.call([{ if hasHead { $0.respondStream() } }]) { client, transport in
        let stream = client.bidirectionalStream(.bidirectional)
        try? await stream.send("a")
        transport.virtualExecutor.runUntilIdle()
        stream.cancel()
      }
      XCTAssertEqual(events, ["begins", "given up"])
    }
  }

  func testDeadline() async {
    let events = await self.call([{ _ in }], timeout: .seconds(3)) { client, transport in
      async let response = client.unary(.unary, "x")
      while transport.streams.isEmpty { await Task.yield() }
      transport.virtualExecutor.advance(by: .seconds(4))
      let code = await response.code
      XCTAssertEqual(code, .deadlineExceeded)
    }
    XCTAssertEqual(events, ["begins", "failed"])
  }

  /// A transport's late events, which break its rules, count nothing.
  func testOnceOnly() async {
    let events = await self.unary { stream in
      let handler = stream.handler
      stream.reply("\"x\"")
      handler?.streamDidEnd(trailers: Headers())
      handler?.streamDidFail(HTTPStreamFailure(error: ConnectError(code: .unavailable)))
    }
    XCTAssertEqual(events, ["begins", "200 -"])
  }

  func testAMessageThatCannotBeSent() async {
    let inner = ScriptedTransport { _ in }
    let transport = CountedTransport(inner)
    var config = ProtocolClientConfig(host: "https://test", codec: JSONCodec())
    config.limits.maximumSentMessageSize = 4
    let client = ProtocolClient(httpClient: transport, config: config)
    let stream = client.bidirectionalStream(.bidirectional)
    try? await stream.send("far too long")
    inner.virtualExecutor.runUntilIdle()
    XCTAssertEqual(transport.tally.events.withLock { $0 }, ["begins", "given up"])
  }
}

/// Counts the streams of another transport.
private final class CountedTransport: HTTPClientInterface, HTTPEndpoint {
  let tally = RecordedTally()
  private let inner: ScriptedTransport

  init(_ inner: ScriptedTransport) { self.inner = inner }

  var executor: any CallExecutor { self.inner.executor }
  var underlying: (any HTTPEndpoint)? { self.inner }

  func endpoint(
    for origin: Origin,
    on executor: (any CallExecutor)?,
    requiresHTTP2: Bool
  ) throws(ConnectError) -> any HTTPEndpoint { self }

  func startStream(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream {
    guard let tallied = handler as? TalliedHandler else {
      XCTFail("a call does not tell how its streams end")
      return self.inner.startStream(request, handler: handler)
    }
    tallied.begin(self.tally)
    return self.inner.startStream(request, handler: handler)
  }
}

private final class RecordedTally: StreamTally, Sendable {
  let events = Mutex<[String]>([])

  private func note(_ event: String) { self.events.withLock { $0.append(event) } }

  func streamBegins() { self.note("begins") }

  func streamDidEnd(_ head: HTTPResponseHead?, trailers: Headers) {
    let values = [head?.headers.first("a"), trailers.first("a")].compactMap { $0 }
    self.note("\(head?.status ?? 0) \(values.isEmpty ? "-" : values.joined(separator: " "))")
  }

  func streamDidEnd(isFailure: Bool) { self.note(isFailure ? "failed" : "given up") }
}
