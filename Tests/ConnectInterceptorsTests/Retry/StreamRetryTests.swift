import Connect
import ConnectInterceptors
import ConnectTesting
import LoopbackServer
import XCTest

/// Streams that are made again, and those that are not.
final class StreamRetryTests: XCTestCase {
  private static func retrying(
    _ policy: RetryPolicy = .defaults,
    _ budget: RetryBudget = RetryBudget(maximumTokens: 1000)
  ) -> InterceptorFactory {
    { _ in RetryInterceptor(policy: policy, budget: budget) }
  }

  private static let protocols: [NetworkProtocol] = [.connect, .grpc, .grpcWeb]

  func testErrorBehindHeaders() async throws {
    for networkProtocol in Self.protocols {
      for sendsHeadersFirst in [false, true] {
        let server = ScriptedServer(failing: .away, .away, sendsHeadersFirst: sendsHeadersFirst)
        let stream = try await server.stream(server.client(over: networkProtocol, Self.retrying()))
        XCTAssertEqual(try stream.requireMessages().map(\.payload.text), ["x"], "\(networkProtocol)")
        XCTAssertFalse(stream.headers.isEmpty)
        XCTAssertEqual(
          server.attempts.map { $0.headers["grpc-previous-rpc-attempts"] },
          [[], ["1"], ["2"]],
          "\(networkProtocol)"
        )
      }
    }
  }

  func testNeverAfterAMessage() async throws {
    for networkProtocol in Self.protocols {
      let server = ScriptedServer(messagesBeforeFailure: 1) { _, _ in throw ConnectError.away }
      let budget = RetryBudget()
      let stream = try await server.stream(
        server.client(over: networkProtocol, Self.retrying(.defaults, budget))
      )
      XCTAssertEqual(stream.code, .unavailable)
      XCTAssertEqual(stream.messages.count, 1)
      XCTAssertEqual(server.attempts.count, 1)
      XCTAssertEqual(budget.tokens, 10)
    }
  }

  /// Where the engine refuses a retry, the headers that were held go out before the error.
  func testRefusedRetry() async throws {
    for (timeout, cap) in [(Duration.seconds(1), 10), (nil, 0)] {
      let server = ScriptedServer(
        failing: .away(["grpc-retry-pushback-ms": ["2000"]]),
        sendsHeadersFirst: true
      )
      let client = server.client(timeout: timeout, retries: cap, Self.retrying())
      let stream = try await server.stream(client)
      XCTAssertEqual(stream.error?.message, "away")
      XCTAssertFalse(stream.headers.isEmpty)
      XCTAssertEqual(server.attempts.count, 1)
      XCTAssertEqual(server.executor.now, .zero)
    }
  }

  func testAttemptsUsedUp() async throws {
    let server = ScriptedServer { number, _ in throw ConnectError(code: .unavailable, message: "\(number)") }
    let stream = try await server.stream(server.client(Self.retrying()))
    XCTAssertEqual(stream.error?.message, "4")
    XCTAssertFalse(stream.headers.isEmpty)
  }

  func testHeadersAreHeldOnlyWhereARetryIsPossible() async throws {
    for (policy, isHeld) in [
      (RetryPolicy(), true), (RetryPolicy(holdsStreamHeaders: false), false),
      (RetryPolicy(methods: { _ in false }), false), (RetryPolicy(maximumAttempts: 1), false),
    ] {
      let server = ScriptedServer(sendsHeadersFirst: true) { _, context in
        try await context.sleep(for: .seconds(1))
      }
      let client = server.client(Self.retrying(policy))
      let results = Observed<[String]>([])
      let stream = client.serverStream(ScriptedServer.method(.serverStream), .text("x")) { result in
        results.update { $0.append("\(result)".prefix { $0 != "(" }.description) }
      }
      server.executor.runUntilIdle()
      XCTAssertEqual(results.value, isHeld ? [] : ["headers"])
      server.executor.advance(by: .seconds(1))
      XCTAssertEqual(results.value, ["headers", "message", "complete"])
      withExtendedLifetime(stream) {}
    }
  }

  /// Headers that are held leave room for the message that lets them go.
  func testTheSmallestWindow() async throws {
    let server = ScriptedServer(failing: .away, sendsHeadersFirst: true)
    var config = ProtocolClientConfig(host: "http://scripted.test", interceptors: [Self.retrying()])
    config.limits.maximumWaitingValues = 1
    let stream = try await server.stream(ProtocolClient(httpClient: server.transport, config: config))
    XCTAssertEqual(try stream.requireMessages().count, 1)
  }

  func testMessagesOfAClientStreamAreSentAgain() async throws {
    for networkProtocol in [NetworkProtocol.connect, .grpc] {
      let server = ScriptedServer(failing: .away, .away)
      let client = server.client(over: networkProtocol, Self.retrying())
      let response = try await server.executor.lettingTimePass {
        let stream = client.clientStream(ScriptedServer.method(.clientStream))
        for text in ["a", "b", "c"] { try await stream.send(.text(text)) }
        return await stream.closeAndReceive()
      }
      XCTAssertEqual(response.message?.payload.text, "c", "\(networkProtocol): \(response)")
      XCTAssertEqual(server.attempts.map(\.messages), Array(repeating: ["a", "b", "c"], count: 3))
    }
  }

  func testMoreMessagesThanAreKept() async throws {
    let server = ScriptedServer(failing: .away)
    let client = ProtocolClient(
      httpClient: server.transport,
      config: ProtocolClientConfig(
        host: "http://scripted.test",
        interceptors: [Self.retrying()],
        retries: .init(maximumReplayBytes: 100)
      )
    )
    let response = try await server.executor.lettingTimePass {
      let stream = client.clientStream(ScriptedServer.method(.clientStream))
      for _ in 0..<50 { try await stream.send(.text("message")) }
      return await stream.closeAndReceive()
    }
    XCTAssertEqual(response.code, .unavailable)
    XCTAssertEqual(server.attempts.count, 1)
  }

  func testABidirectionalStream() async throws {
    let server = ScriptedServer(failing: .away)
    let client = server.client(over: .grpc, Self.retrying())
    let collected = try await server.executor.lettingTimePass {
      let stream = client.bidirectionalStream(ScriptedServer.method(.bidirectionalStream))
      try await stream.send(.text("a"))
      try await stream.send(.text("b"))
      stream.finish()
      return try await stream.results.collected()
    }
    XCTAssertEqual(try collected.requireMessages().map(\.payload.text), ["a", "b"])
    XCTAssertEqual(server.attempts.map(\.messages), [["a"], ["a", "b"]])
  }

  func testCancelledWhileItWaits() async throws {
    let server = ScriptedServer(failing: .away(["grpc-retry-pushback-ms": ["1000"]]))
    let client = server.client(Self.retrying())
    let codes = Observed<[Code]>([])
    let stream = client.serverStream(ScriptedServer.method(.serverStream), .text("x")) { result in
      if case .complete(let code, _, _) = result { codes.update { $0.append(code) } }
    }
    server.executor.runUntilIdle()
    XCTAssertEqual(server.executor.scheduled, [.seconds(1)])
    stream.cancel()
    server.executor.runUntilIdle()
    XCTAssertEqual(codes.value, [.canceled])
    XCTAssertEqual(server.executor.scheduled, [])
  }
}
