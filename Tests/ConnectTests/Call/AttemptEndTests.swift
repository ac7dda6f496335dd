import Connect
import ConnectTesting
import NIOCore
import XCTest

/// An attempt that is given up, that does not get to the network, or that goes out once more unseen.
final class AttemptEndTests: XCTestCase {
  private static let json: Headers = ["content-type": ["application/json"]]

  // MARK: Giving up

  /// What has come of a unary response when the call is cancelled.
  private static let stages: [(name: String, script: @Sendable (ScriptedStream) -> Void)] = [
    ("before the head", { _ in }),
    ("after the head", { $0.respond(headers: json) }),
    (
      "in the middle of the body",
      { stream in
        stream.respond(headers: json)
        stream.send(ByteBuffer(string: "\"a"))
      }
    ),
    (
      "behind the whole body",
      { stream in
        stream.respond(headers: json)
        stream.send(ByteBuffer(string: "\"a\""))
      }
    ),
  ]

  /// Cancelled once on the wire; what a transport tells of it afterwards changes nothing.
  func testLateEventsAreIgnored() {
    for (name, script) in Self.stages {
      for isByDeadline in [false, true] {
        let transport = ScriptedTransport({ _ in }, executor: VirtualExecutor())
        let executor = transport.virtualExecutor
        let metrics = Events()
        let measuring = TestInterceptor.make { interceptor in
          interceptor.unaryBytes.responseMetricsFunction = { value, proceed in
            metrics.add("\(value.attempt) \(value.httpStatus ?? 0) \(value.responseBodyBytes)")
            proceed(value)
          }
        }
        let outcomes = Events()
        let client = ProtocolClient.scripted(transport, interceptors: [measuring], timeout: .seconds(1))
        let handle = client.unary(.unary, "a") { outcomes.add("\($0.code)") }
        executor.runUntilIdle()
        let stream = transport.streams[0]
        executor.sync { script(stream) }
        executor.runUntilIdle()
        let handler = stream.handler
        if isByDeadline { executor.advance(by: .seconds(1)) } else { handle.cancel() }
        executor.runUntilIdle()
        let code = isByDeadline ? Code.deadlineExceeded : .canceled
        XCTAssertEqual(outcomes.all, ["\(code)"], name)
        XCTAssertEqual(stream.calls, ["cancel"], name)
        let seen = metrics.all
        XCTAssertEqual(seen.count, 1, name)
        executor.sync {
          handler?.streamDidStart(on: HTTPConnectionInfo(version: .http1, isReused: true))
          handler?.streamDidBecomeWritable()
          handler?.streamDidReceive(HTTPResponseHead(status: 200, headers: Self.json))
          handler?.streamDidReceive(ByteBuffer(string: "\"b\""))
          handler?.streamDidEnd(trailers: Headers())
          handler?.streamDidFail(HTTPStreamFailure(error: ConnectError(code: .aborted), isUnprocessed: true))
        }
        handle.cancel()
        executor.advance(by: .seconds(1000))
        XCTAssertEqual(outcomes.all, ["\(code)"], name)
        XCTAssertEqual(stream.calls, ["cancel"], name)
        XCTAssertEqual(metrics.all, seen, name)
        XCTAssertEqual(transport.streams.count, 1, name)
        XCTAssertEqual(executor.scheduled, [], name)
      }
    }
  }

  /// Events of an attempt that was given up for another one do not reach the call.
  func testLateEventsOfAnAttemptThatWasGivenUp() {
    let isImpatient = Signal<Void>()
    let impatient = TestAsyncInterceptor.unary { request, next in
      await withTaskGroup(of: Void.self) { group in
        group.addTask { _ = try? await next(request) }
        await isImpatient.wait()
        group.cancelAll()
      }
      return try await next(request)
    }
    for hedging in [nil, HedgingPolicy(delay: .seconds(1), allowsSideEffects: true)] {
      let transport = ScriptedTransport({ _ in }, executor: VirtualExecutor())
      let executor = transport.virtualExecutor
      let outcomes = Events()
      let client = ProtocolClient.scripted(transport, interceptors: [impatient]) {
        $0.hedging = { _ in hedging }
      }
      client.unary(.unary, "a") { outcomes.add($0.message?.text ?? "\($0.code)") }
      executor.runUntilIdle()
      XCTAssertEqual(transport.streams.count, 1)
      let handler = transport.streams[0].handler
      isImpatient.fire()
      executor.runUntilIdle()
      XCTAssertEqual(transport.streams.map(\.calls), [["cancel"], []])
      executor.sync {
        handler?.streamDidReceive(HTTPResponseHead(status: 200, headers: Self.json))
        handler?.streamDidReceive(ByteBuffer(string: "\"old\""))
        handler?.streamDidEnd(trailers: Headers())
      }
      executor.runUntilIdle()
      XCTAssertEqual(outcomes.all, [])
      executor.sync { transport.streams[1].reply("\"new\"") }
      executor.runUntilIdle()
      XCTAssertEqual(outcomes.all, ["new"])
      executor.advance(by: .seconds(1000))
      XCTAssertEqual(outcomes.all, ["new"])
      XCTAssertEqual(transport.streams.map(\.calls), [["cancel"], []])
      XCTAssertEqual(executor.scheduled, [])
    }
  }

  // MARK: The transport does not take it

  /// A transport that fails each attempt in a way of its own.
  private final class FailingTransport: HTTPClientInterface, HTTPEndpoint {
    enum Way: CaseIterable {
      /// There is no way to the origin.
      case noEndpoint
      /// Before the stream has started.
      case beforeTheStart
      /// Within the function that starts it, which no transport should do.
      case withinTheStart
    }

    private final class Stream: HTTPStream {
      func write(_ bytes: ByteBuffer) {}
      func finish(trailers: Headers) {}
      func consume(_ count: Int) {}
      func cancel() {}
    }

    let virtualExecutor = VirtualExecutor()
    let way: Way
    let count = Box(0)

    init(_ way: Way) { self.way = way }

    var executor: any CallExecutor { self.virtualExecutor }

    func endpoint(
      for origin: Origin,
      on executor: (any CallExecutor)?,
      requiresHTTP2: Bool
    ) throws(ConnectError) -> any HTTPEndpoint {
      // The first one is for the client itself.
      if self.way == .noEndpoint, executor != nil {
        throw ConnectError(code: .unavailable, message: "no way")
      }
      return self
    }

    func startStream(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream {
      _ = self.count.increment()
      let failure = HTTPStreamFailure(error: ConnectError(code: .unavailable, message: "no way"))
      switch self.way {
      case .withinTheStart:
        handler.streamDidFail(failure)
      case .noEndpoint, .beforeTheStart:
        let handler = Confined(handler)
        self.virtualExecutor.execute { handler.value.streamDidFail(failure) }
      }
      return Stream()
    }

    /// Hands a value that is used on one executor to that.
    private struct Confined<Value>: @unchecked Sendable {
      let value: Value
      init(_ value: Value) { self.value = value }
    }
  }

  func testAnAttemptThatDoesNotStart() {
    let elsewhere = TestInterceptor.make { interceptor in
      interceptor.unaryBytes.requestFunction = { request, proceed in
        var request = request
        request.url.origin.host = "elsewhere.test"
        proceed(.success(request))
      }
      interceptor.streamBytes.requestFunction = { request, proceed in
        var request = request
        request.url.origin.host = "elsewhere.test"
        proceed(.success(request))
      }
    }
    for way in FailingTransport.Way.allCases {
      for retryCount in [0, 2] {
        let transport = FailingTransport(way)
        let executor = transport.virtualExecutor
        let retrying = TestInterceptor.make { interceptor in
          interceptor.unaryMessages.responseFunction = { response, proceed in
            if response.error == nil { proceed(response) } else { proceed.retry() }
          }
          interceptor.streamMessages.streamResultFunction = { result, proceed in
            if case .complete = result { proceed.retry() } else { proceed(result) }
          }
        }
        let client = ProtocolClient(
          httpClient: transport,
          config: ProtocolClientConfig(
            host: "http://scripted.test",
            codec: JSONCodec(),
            interceptors: [retrying, elsewhere],
            retries: ProtocolClientConfig.Retries(maximumRetries: retryCount)
          )
        )
        let outcomes = Events()
        client.unary(.unary, "a") {
          outcomes.add("\($0.code) \($0.error?.message?.contains("no way") == true)")
        }
        let handle = client.bidirectionalStream(.bidirectional) { outcomes.add($0.short) }
        handle.send("a")
        handle.finish()
        executor.runUntilIdle()
        XCTAssertEqual(outcomes.all, ["unavailable true", "end unavailable"], "\(way)")
        XCTAssertEqual(transport.count.value, way == .noEndpoint ? 0 : 2 * (retryCount + 1), "\(way)")
        executor.advance(by: .seconds(1000))
        XCTAssertEqual(outcomes.all.count, 2, "\(way)")
        XCTAssertEqual(executor.scheduled, [], "\(way)")
      }
    }
  }

  // MARK: Transparent retry

  /// Seen by nobody: one attempt for call hooks and metrics, one request for hooks, one half-close.
  func testATransparentRetryIsOneAttempt() {
    let events = Events()
    let watching = TestInterceptor.make { interceptor in
      interceptor.call.outcomeFunction = { outcome in events.add("call \(outcome.attempts)") }
      interceptor.streamMessages.requestMessageFunction = { message, proceed in
        events.add("message \(message.text)")
        proceed(message)
      }
      interceptor.streamBytes.responseMetricsFunction = { metrics, proceed in
        events.add("metrics \(metrics.attempt) \(metrics.requestBodyBytes)")
        proceed(metrics)
      }
    }
    let stream = SteppedStream(interceptors: [watching])
    stream.send("a", "b")
    stream.server { $0.fail(ConnectError(code: .unavailable), isUnprocessed: true) }
    XCTAssertEqual(stream.attempts.count, 2)
    stream.send("c")
    stream.finish()
    XCTAssertEqual(stream.written, ["a", "b", "c"])
    XCTAssertEqual(stream.attempts[1].calls, ["write 8", "write 8", "write 8", "finish"])
    stream.server { scripted in
      scripted.respondStream()
      scripted.endStream()
    }
    stream.assertEnded(["headers", "end ok"])
    XCTAssertEqual(stream.answers, ["a sent", "b sent", "c sent"])
    XCTAssertEqual(events.all, ["message a", "message b", "message c", "metrics 1 24", "call 1"])
  }

  /// What waited for the window of the first stream has room in the second one.
  func testTheWindowOpensWithATransparentRetry() {
    let stream = SteppedStream { $0.isWritable = false }
    let text = String(repeating: "x", count: 30_000)
    stream.send(text, text)
    stream.server { $0.fail(ConnectError(code: .unavailable), isUnprocessed: true) }
    XCTAssertEqual(stream.attempts.map(\.calls.count), [2, 2])
    stream.send("a")
    XCTAssertEqual(stream.written.last, "a")
    stream.cancel()
    XCTAssertEqual(stream.attempts.map(\.isCancelled), [false, true])
    stream.assertEnded(["end canceled"])
  }

  func testNoTransparentRetryOfWhatIsOver() {
    let late = SteppedStream(timeout: .seconds(1))
    late.executor.passUnnoticed(.seconds(1))
    late.server { $0.fail(ConnectError(code: .unavailable), isUnprocessed: true) }
    XCTAssertEqual(late.attempts.count, 1)
    late.assertEnded(["end deadline_exceeded"])

    let begun = SteppedStream()
    begun.server { scripted in
      scripted.respondStream()
      scripted.fail(ConnectError(code: .unavailable), isUnprocessed: true)
    }
    XCTAssertEqual(begun.attempts.count, 1)
    begun.assertEnded(["headers", "end unavailable"])
  }

  /// A retry by a hook after a transparent one is another attempt, and has no transparent one of its own.
  func testTransparentRetriesAndRetries() {
    let attempts = Events()
    let interceptor = TestInterceptor.make { interceptor in
      interceptor.unaryBytes.responseFunction = { response, proceed in
        if response.error == nil { proceed(response) } else { proceed.retry() }
      }
      interceptor.unaryBytes.responseMetricsFunction = { metrics, proceed in
        attempts.add("metrics \(metrics.attempt)")
        proceed(metrics)
      }
      interceptor.call.outcomeFunction = { outcome in attempts.add("call \(outcome.attempts)") }
    }
    let transport = ScriptedTransport(
      { $0.fail(ConnectError(code: .unavailable), isUnprocessed: true) },
      executor: VirtualExecutor()
    )
    let outcomes = Events()
    ProtocolClient.scripted(transport, interceptors: [interceptor]).unary(.unary, "a") {
      outcomes.add("\($0.code)")
    }
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(outcomes.all, ["unavailable"])
    XCTAssertEqual(transport.streams.count, 5)
    XCTAssertEqual(attempts.all, ["metrics 1", "metrics 2", "metrics 3", "metrics 4", "call 4"])
  }
}
