internal import Connect
internal import Foundation
internal import LoopbackServer
internal import SwiftProtobuf
import XCTest

/// A third-party HTTP/2 server (the Python package h2) that breaks rules on purpose.
final class HTTP2MisbehaviourTests: XCTestCase {
  private struct Nothing: Codable {}

  private struct Statistics: Codable {
    var connections: Int
    var requests: [String: Int]
    var resets: [String: [Int]]
  }

  @discardableResult
  private func withClient<Result>(
    port: String = "normal",
    interceptors: [InterceptorFactory] = [],
    _ body: (ProtocolClient, PythonServer) async throws -> Result
  ) async throws -> Result {
    let server = try await PythonServer.shared(.misbehaving)
    let host = "http://127.0.0.1:\(try server.port(port))"
    return try await withPlainClient(.http2, host: host, configure: { $1.interceptors = interceptors }) {
      client in
      try await body(client, server)
    }
  }

  private func statistics() async throws -> Statistics {
    let method = MethodSpec<Nothing, Statistics>(codablePath: "/stats", streamType: .unary)
    let server = try await PythonServer.shared(.misbehaving)
    let host = "http://127.0.0.1:\(try server.port("normal"))"
    return try await withPlainClient(.http2, host: host, configure: { $1.codec = JSONCodec() }) { client in
      try await client.unary(method, Nothing()).get()
    }
  }

  /// Its `ok` echoes bytes: the payload of a request is the payload of the response.
  private let request = EchoRequest.with { $0.payload.text = "echo" }

  // MARK: Failures

  func testEachFailureOfAUnaryCall() async throws {
    let cases: [(name: String, expected: ExpectedError)] = [
      ("refused", ExpectedError(.unavailable, "REFUSED_STREAM")),
      ("enhance-your-calm", ExpectedError(.resourceExhausted, "ENHANCE_YOUR_CALM")),
      ("internal-error", ExpectedError(.internalError, "INTERNAL_ERROR")),
      ("cancel", ExpectedError(.canceled, "CANCEL")),
      ("inadequate-security", ExpectedError(.permissionDenied, "INADEQUATE_SECURITY")),
      ("no-error", ExpectedError(.internalError, "NO_ERROR")),
      ("reset-after-headers", ExpectedError(.internalError, "INTERNAL_ERROR")),
      ("reset-half-body", ExpectedError(.internalError, "INTERNAL_ERROR")),
      ("short-body", ExpectedError(.internalError)),
      ("goaway-error", ExpectedError(.unavailable, "GOAWAY")),
      ("bad-gateway", ExpectedError(.unavailable, "502")),
      ("close-before-headers", ExpectedError(.unavailable)),
      ("close-mid-stream", ExpectedError(.unavailable)),
      ("truncated-frame", ExpectedError(.unavailable)),
      ("garbage", ExpectedError(.internalError, "broke the HTTP/2 protocol")),
      ("data-on-stream-zero", ExpectedError(.internalError, "broke the HTTP/2 protocol")),
      ("huge-headers", ExpectedError(.resourceExhausted, "limit")),
      ("no-such-behaviour", ExpectedError(.unimplemented, "404")),
    ]
    for (name, expected) in cases {
      try await self.withClient { client, _ in
        try await client.expectFailure(unaryMethod("/\(name)"), expected, name, request: self.request)
        let response = await client.unary(unaryMethod("/ok"), self.request)
        XCTAssertEqual(response.message?.payload.text, "echo", "after \(name): \(response)")
      }
    }
  }

  func testEachFailureOfAStream() async throws {
    let cases: [(name: String, expected: ExpectedError, messages: Int)] = [
      ("stream-no-end", ExpectedError(.internalError, "end"), 1),
      ("stream-truncated-envelope", ExpectedError(.internalError), 1),
      ("stream-reset", ExpectedError(.internalError, "INTERNAL_ERROR"), 1),
      ("stream-after-end", ExpectedError(.internalError), 0),
      ("close-mid-stream", ExpectedError(.unavailable), 0),
      ("refused", ExpectedError(.unavailable, "REFUSED_STREAM"), 0),
      ("bad-gateway", ExpectedError(.unavailable, "502"), 0),
    ]
    for (name, expected, messages) in cases {
      try await self.withClient { client, _ in
        try await client.expectStreamFailure(streamMethod("/\(name)"), expected, name, messages: messages)
        let outcome = await client.serverStream(streamMethod("/stream-ok"), CountRequest()).results.collect()
        XCTAssertEqual(outcome.code, .ok, "after \(name): \(outcome)")
      }
    }
  }

  // MARK: Transparent retry

  /// Interceptors see one attempt, which succeeds.
  func testRefusedOnce() async throws {
    let requests = Counter()
    let attempts = Recorder<Int>()
    try await self.withClient(
      interceptors: [{ _ in AttemptCounter(requests: requests, attempts: attempts) }]
    ) { client, _ in
      let options = CallOptions(headers: ["x-case": [UUID().uuidString]])
      let before = try await self.statistics().requests["refused-once"] ?? 0
      let response = await client.unary(unaryMethod("/refused-once"), self.request, options: options)
      XCTAssertEqual(response.message?.payload.text, "echo", "\(response)")
      let after = try await self.statistics().requests["refused-once"] ?? 0
      XCTAssertEqual(after - before, 2)
    }
    XCTAssertEqual(requests.value, 1)
    XCTAssertEqual(attempts.values, [1])
  }

  /// Once, not for ever.
  func testRefusedAlways() async throws {
    try await self.withClient { client, _ in
      let before = try await self.statistics().requests["refused"] ?? 0
      let response = await client.unary(unaryMethod("/refused"), self.request)
      XCTAssertEqual(response.code, .unavailable)
      let after = try await self.statistics().requests["refused"] ?? 0
      XCTAssertEqual(after - before, 2)
    }
  }

  /// GOAWAY says that the stream was not processed: it goes to a new connection.
  func testGoAwayBelowTheStream() async throws {
    try await self.withClient { client, _ in
      let options = CallOptions(headers: ["x-case": [UUID().uuidString]])
      let response = await client.unary(unaryMethod("/goaway-once"), self.request, options: options)
      XCTAssertEqual(response.message?.payload.text, "echo", "\(response)")
    }
  }

  /// GOAWAY that includes the stream: it finishes; later calls go to a new connection.
  func testGoAwayWithOpenStreams() async throws {
    try await self.withClient { client, _ in
      let before = try await self.statistics().connections
      let response = await client.unary(unaryMethod("/goaway-open"), self.request)
      XCTAssertEqual(response.message?.payload.text, "echo", "\(response)")
      let next = await client.unary(unaryMethod("/ok"), self.request)
      XCTAssertEqual(next.message?.payload.text, "echo", "\(next)")
      // Two of this client, two of `statistics()`, of which the first had counted itself.
      let after = try await self.statistics().connections
      XCTAssertEqual(after - before, 3)
    }
  }

  /// Streams below the last id finish although the server goes away in the middle.
  func testGoAwayInTheMiddleOfManyStreams() async throws {
    try await EmbeddedServer.run(.http2) { embedded in
      embedded.server.onRaw("/goaway") { request, responder in
        _ = try await request.body()
        try await responder.goAway()
        try await responder.respond(headers: ["content-type": "application/proto"])
      }
      let client = embedded.client
      let slow = CountRequest.with {
        $0.instruction.messageCount = 10
        $0.instruction.messageDelayMs = 20
      }
      var streams: [Task<StreamOutcome<CountResponse>, Never>] = []
      for _ in 0..<10 {
        streams.append(Task { await client.serverStream(TestMethods.count, slow).results.collect() })
      }
      try await embedded.server.journal.wait { $0.requests.count == 10 }
      let response = await client.unary(unaryMethod("/goaway"), EchoRequest())
      XCTAssertEqual(response.code, .ok, "\(response)")
      let next = await client.unary(TestMethods.echo, EchoRequest())
      XCTAssertEqual(next.code, .ok, "\(next)")
      for stream in streams {
        let outcome = await stream.value
        XCTAssertEqual(outcome.code, .ok, "\(outcome)")
        XCTAssertEqual(outcome.messages.count, 10)
      }
      XCTAssertEqual(embedded.server.journal.snapshot.acceptedConnections, 2)
    }
  }

  // MARK: Settings

  /// MAX_CONCURRENT_STREAMS is 1: all calls finish, none is refused.
  func testOneStreamAtATime() async throws {
    try await self.withClient(port: "one_stream") { client, _ in
      let before = try await self.statistics()
      let request = self.request
      await withTaskGroup(of: ResponseMessage<EchoResponse>.self) { group in
        for _ in 0..<20 { group.addTask { await client.unary(unaryMethod("/slow"), request) } }
        for await response in group { XCTAssertEqual(response.message?.payload.text, "echo", "\(response)") }
      }
      let after = try await self.statistics()
      XCTAssertEqual((after.requests["slow"] ?? 0) - (before.requests["slow"] ?? 0), 20)
      XCTAssertEqual(after.resets["slow"], before.resets["slow"])
    }
  }

  /// A window that never opens: sending waits, and the deadline ends it.
  func testWindowThatNeverOpens() async throws {
    try await self.withClient(port: "closed_window") { client, _ in
      // The server's settings have arrived when this is over.
      _ = await client.unary(unaryMethod("/no-such-behaviour"), EchoRequest())
      let method = MethodSpec<SumRequest, SumResponse>(path: "/never", streamType: .clientStream)
      let stream = client.clientStream(method, options: CallOptions(timeout: .seconds(1)))
      let accepted = Counter()
      do {
        while true {
          try await stream.send(
            .with { $0.instruction.trailers = [.with { $0.name = String(repeating: "x", count: 4096) }] }
          )
          accepted.increment()
          if accepted.value > 1000 { break }
        }
        XCTFail("4 MB were accepted where the window is closed")
      } catch {
        XCTAssertEqual((error as? ConnectError)?.code, .failedPrecondition)
      }
      let response = await stream.closeAndReceive()
      XCTAssertEqual(response.code, .deadlineExceeded)

      let big = EchoRequest.with { $0.payload.text = String(repeating: "x", count: 1 << 20) }
      let unary = await client.unary(
        unaryMethod("/never"),
        big,
        options: CallOptions(timeout: .milliseconds(300))
      )
      XCTAssertEqual(unary.code, .deadlineExceeded)
    }
  }

  // MARK: What is allowed

  func testEarlyHints() async throws {
    try await self.withClient { client, _ in
      let response = await client.unary(unaryMethod("/early-hints"), self.request)
      XCTAssertEqual(response.message?.payload.text, "echo", "\(response)")
    }
  }

  /// The server answers before the request has ended, and asks for the rest to be dropped.
  func testEarlyAnswer() async throws {
    try await self.withClient { client, _ in
      let big = EchoRequest.with { $0.payload.text = String(repeating: "x", count: 1 << 20) }
      let response = await client.unary(unaryMethod("/early-answer"), big)
      XCTAssertEqual(response.code, .ok, "\(response)")
    }
  }

  /// A stream that is refused before its request has ended.
  func testRefusedEarly() async throws {
    try await self.withClient { client, _ in
      let method = MethodSpec<SumRequest, SumResponse>(path: "/refused-early", streamType: .clientStream)
      let stream = client.clientStream(method)
      while (try? await stream.send(.with { $0.number = 1 })) != nil {}
      let response = await stream.closeAndReceive()
      XCTAssertEqual(response.code, .unavailable, "\(response)")
    }
  }
}

/// Counts what byte hooks see.
private final class AttemptCounter: Interceptor {
  private let requests: Counter
  private let attempts: Recorder<Int>

  init(requests: Counter, attempts: Recorder<Int>) {
    self.requests = requests
    self.attempts = attempts
  }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { request, proceed in
        self.requests.increment()
        proceed(.success(request))
      },
      responseMetricsFunction: { metrics, proceed in
        self.attempts.record(metrics.attempt)
        proceed(metrics)
      }
    )
  }
}
