import Connect
import ConnectTesting
import NIOCore
import XCTest

/// The deadline and cancellation at every stage of a call: the caller gets the error once, hooks that wait for a
/// response get it once, and nothing is left on the wire.
final class DeadlineTests: XCTestCase {
  private enum End: CaseIterable {
    case deadline, cancellation

    var code: Code { self == .deadline ? .deadlineExceeded : .canceled }
  }

  /// Interceptors around the one that holds the call up, and what has to be seen by them.
  private struct Stage {
    let name: String
    var holdsRequest = false
    var holdsResponse = false
    var retriesLater = false
    var script: ScriptedTransport.Script = { _ in }
    /// Message responses of A (outside), B (the one itself), C (inside).
    let expected: [String]
    /// How many of the streams must have been cancelled.
    var cancelledStreams = 1
  }

  private static let stages: [Stage] = [
    Stage(name: "request hook", holdsRequest: true, expected: ["A"], cancelledStreams: 0),
    Stage(name: "waiting for the server", expected: ["C", "B", "A"]),
    Stage(
      name: "after headers",
      script: { $0.respond(headers: ["content-type": ["application/json"]]) },
      expected: ["C", "B", "A"]
    ),
    Stage(
      name: "response hook",
      holdsResponse: true,
      script: { $0.reply("\"x\"") },
      expected: ["C ok", "A"],
      cancelledStreams: 0
    ),
    Stage(
      name: "retry delay",
      retriesLater: true,
      script: { $0.reply(.unavailable) },
      expected: ["C unavailable", "A"],
      cancelledStreams: 0
    ),
  ]

  private func end(_ end: End, _ handle: CallHandle, _ transport: ScriptedTransport) {
    transport.virtualExecutor.runUntilIdle()
    switch end {
    case .deadline:
      transport.virtualExecutor.advance(by: .seconds(9))
      XCTAssertTrue(transport.streams.allSatisfy { !$0.isCancelled })
      transport.virtualExecutor.advance(by: .seconds(1))
    case .cancellation:
      handle.cancel()
      transport.virtualExecutor.runUntilIdle()
    }
  }

  func testUnaryAtEveryStage() async {
    for stage in Self.stages {
      // A delay that would pass the deadline is refused, so that only cancellation can come during one.
      for end in End.allCases where end == .cancellation || !stage.retriesLater {
        let events = Events()
        let observing: @Sendable (String) -> InterceptorFactory = { name in
          TestInterceptor.make { interceptor in
            interceptor.unaryMessages.responseFunction = { response, proceed in
              events.add(response.code == end.code ? name : "\(name) \(response.code)")
              if name == "B", stage.holdsResponse, response.code == .ok { return Self.keep(proceed) }
              if name == "B", stage.retriesLater { return proceed.retry(after: .seconds(9.5)) }
              proceed(response.code == end.code ? ResponseMessage(message: "ignored") : response)
            }
            interceptor.unaryMessages.requestFunction = { request, proceed in
              if name == "B", stage.holdsRequest { return Self.keep(proceed) }
              proceed(.success(request))
            }
          }
        }
        let transport = ScriptedTransport(stage.script)
        let client = ProtocolClient.scripted(
          transport,
          interceptors: ["A", "B", "C"].map(observing),
          timeout: .seconds(10)
        )
        let (handle, outcome) = client.outcome(of: "x")
        self.end(end, handle, transport)
        let response = await outcome.wait()
        XCTAssertEqual(response.error?.code, end.code, "\(stage.name), \(end)")
        // The hook that retries is told of the error it saw, and then of nothing more.
        let expected = stage.expected.flatMap { $0 == "C unavailable" ? [$0, "B unavailable"] : [$0] }
          .flatMap { $0 == "C ok" ? [$0, "B ok"] : [$0] }
        XCTAssertEqual(events.all, expected, "\(stage.name), \(end)")
        XCTAssertEqual(transport.streams.count { $0.isCancelled }, stage.cancelledStreams, stage.name)
        transport.virtualExecutor.advance(by: .seconds(100))
        XCTAssertEqual(outcome.count, 0)
        XCTAssertLessThanOrEqual(transport.streams.count, 1)
        XCTAssertEqual(transport.virtualExecutor.scheduled, [])
        Self.kept.value = []
      }
    }
  }

  private static let kept = Box<[any Sendable]>([])

  private static func keep(_ proceed: any Sendable) {
    self.kept.value = self.kept.value + [proceed]
  }

  func testStreamAtEveryStage() async {
    for stage in Self.stages where stage.name != "after headers" && stage.name != "response hook" {
      // A delay that would pass the deadline is refused, so that only cancellation can come during one.
      for end in End.allCases where end == .cancellation || !stage.retriesLater {
        let events = Events()
        let observing: @Sendable (String) -> InterceptorFactory = { name in
          TestInterceptor.make { interceptor in
            interceptor.streamMessages.streamResultFunction = { result, proceed in
              events.add(result.short == "end \(end.code)" ? name : "\(name) \(result.short)")
              if name == "B", stage.retriesLater { return proceed.retry(after: .seconds(9.5)) }
              proceed(result)
            }
            interceptor.streamMessages.requestFunction = { request, proceed in
              if name == "B", stage.holdsRequest { return Self.keep(proceed) }
              proceed(.success(request))
            }
          }
        }
        let transport = ScriptedTransport { stream in
          if stage.retriesLater { stream.fail(ConnectError(code: .unavailable)) }
        }
        let client = ProtocolClient.scripted(
          transport,
          interceptors: ["A", "B", "C"].map(observing),
          timeout: .seconds(10)
        )
        let results = Signal<String>()
        let handle = client.serverStream(.serverStream, "x") { results.fire($0.short) }
        transport.virtualExecutor.runUntilIdle()
        switch end {
        case .deadline: transport.virtualExecutor.advance(by: .seconds(10))
        case .cancellation: handle.cancel()
        }
        let result = await results.wait()
        XCTAssertEqual(result, "end \(end.code)")
        let expected = stage.expected.flatMap {
          $0 == "C unavailable" ? ["C end unavailable", "B end unavailable"] : [$0]
        }
        XCTAssertEqual(events.all, expected, "\(stage.name), \(end)")
        XCTAssertEqual(transport.streams.count { $0.isCancelled }, stage.cancelledStreams, stage.name)
        transport.virtualExecutor.advance(by: .seconds(100))
        XCTAssertEqual(results.count, 0)
        XCTAssertEqual(transport.virtualExecutor.scheduled, [])
        Self.kept.value = []
      }
    }
  }

  /// A hook keeps a value of a stream for itself: the call ends all the same, once, also on the wire.
  func testAHookThatKeepsAValueOfAStream() async {
    let places: [(name: String, results: [String], configure: @Sendable (inout TestInterceptor) -> Void)] = [
      (
        "message", ["headers", "a"],
        { $0.streamMessages.requestMessageFunction = { _, proceed in Self.keep(proceed) } }
      ),
      (
        "data", ["headers", "a"],
        { $0.streamBytes.requestMessageFunction = { _, proceed in Self.keep(proceed) } }
      ),
      (
        "result", ["headers"],
        {
          $0.streamMessages.streamResultFunction = { result, proceed in
            if case .message = result { Self.keep(proceed) } else { proceed(result) }
          }
        }
      ),
      (
        "result in bytes", ["headers"],
        {
          $0.streamBytes.streamResultFunction = { result, proceed in
            if case .message = result { Self.keep(proceed) } else { proceed(result) }
          }
        }
      ),
      ("headers", [], { $0.streamMessages.streamResultFunction = { _, proceed in Self.keep(proceed) } }),
    ]
    for place in places {
      for end in End.allCases {
        let transport = ScriptedTransport { stream in
          stream.respondStream()
          stream.sendMessage("\"a\"")
        }
        let client = ProtocolClient.scripted(
          transport,
          interceptors: [TestInterceptor.make(place.configure)],
          timeout: .seconds(10)
        )
        let results = Signal<String>()
        let handle = client.bidirectionalStream(.bidirectional) { results.fire($0.short) }
        handle.send("x")
        transport.virtualExecutor.runUntilIdle()
        switch end {
        case .deadline: transport.virtualExecutor.advance(by: .seconds(10))
        case .cancellation: handle.cancel()
        }
        var seen: [String] = []
        while seen.last != "end \(end.code)", seen.count < 5 { seen.append(await results.wait()) }
        XCTAssertEqual(seen, place.results + ["end \(end.code)"], "\(place.name), \(end)")
        XCTAssertEqual(transport.streams.map(\.isCancelled), [true], "\(place.name), \(end)")
        transport.virtualExecutor.advance(by: .seconds(100))
        XCTAssertEqual(results.count, 0)
        XCTAssertEqual(transport.virtualExecutor.scheduled, [])
        Self.kept.value = []
      }
    }
  }

  func testBeforeTheStart() async {
    let transport = ScriptedTransport.echo()
    let client = ProtocolClient.scripted(transport)
    let expired = await client.unary(.unary, "x", options: CallOptions(timeout: .zero))
    XCTAssertEqual(expired.error?.code, .deadlineExceeded)
    let negative = await client.unary(.unary, "x", options: CallOptions(timeout: .seconds(-1)))
    XCTAssertEqual(negative.error?.code, .deadlineExceeded)
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await client.unary(.unary, "x")
    }
    let cancelled = await task.value
    XCTAssertEqual(cancelled.error?.code, .canceled)
    XCTAssertEqual(transport.streams.count, 0)
  }

  func testACompletedCallIsNotCompletedAgain() async {
    let transport = ScriptedTransport.echo()
    let client = ProtocolClient.scripted(transport, timeout: .seconds(1))
    let (handle, outcome) = client.outcome(of: "x")
    let response = await outcome.wait()
    XCTAssertEqual(response.message, "x")
    handle.cancel()
    transport.virtualExecutor.advance(by: .seconds(2))
    XCTAssertEqual(outcome.count, 0)
    XCTAssertFalse(transport.streams[0].isCancelled)
  }

  // MARK: What the server is told

  func testTheTimeoutOnTheWireShrinksWithTimeSpentInInterceptors() async {
    let transport = ScriptedTransport.echo()
    let held = Signal<@Sendable () -> Void>()
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestInterceptor.make { interceptor in
          interceptor.unaryMessages.requestFunction = { request, proceed in
            held.fire { proceed(.success(request)) }
          }
        }
      ],
      timeout: .seconds(10)
    )
    let outcome = client.outcome(of: "x").outcome
    let proceed = await held.wait()
    transport.virtualExecutor.advance(by: .milliseconds(2500))
    proceed()
    _ = await outcome.wait()
    XCTAssertEqual(transport.streams[0].request.headers["connect-timeout-ms"], ["7500"])
  }

  func testTheCallsTimeoutOverridesTheClients() async {
    let transport = ScriptedTransport.echo()
    let client = ProtocolClient.scripted(transport, timeout: .seconds(10))
    _ = await client.unary(.unary, "x", options: CallOptions(timeout: .seconds(60)))
    _ = await client.unary(.unary, "x")
    XCTAssertEqual(
      transport.streams.map { $0.request.headers["connect-timeout-ms"] },
      [["60000"], ["10000"]]
    )
    let unlimited = ScriptedTransport.echo()
    _ = await ProtocolClient.scripted(unlimited).unary(.unary, "x")
    XCTAssertEqual(unlimited.streams[0].request.headers["connect-timeout-ms"], [])
  }

  // MARK: Streams

  func testCancellingTheTaskDroppingTheStreamAndCancel() async {
    let started = Signal<ScriptedStream>()
    let transport = ScriptedTransport { started.fire($0) }
    let client = ProtocolClient.scripted(transport)

    let reading = Task {
      var last: String?
      for await result in client.serverStream(.serverStream, "x").results { last = result.short }
      return last
    }
    let first = await started.wait()
    reading.cancel()
    let last = await reading.value
    XCTAssertEqual(last, "end canceled")
    XCTAssertTrue(first.isCancelled)

    do {
      let stream = client.bidirectionalStream(.bidirectional)
      _ = await started.wait()
      withExtendedLifetime(stream) {}
    }
    transport.virtualExecutor.runUntilIdle()
    XCTAssertTrue(transport.streams[1].isCancelled)

    let stream = client.clientStream(.clientStream)
    let third = await started.wait()
    stream.cancel()
    let response = await stream.closeAndReceive()
    XCTAssertEqual(response.error?.code, .canceled)
    XCTAssertTrue(third.isCancelled)
  }

  func testCancellingATaskThatSends() async {
    let started = Signal<Void>()
    let transport = ScriptedTransport { stream in
      stream.isWritable = false
      started.fire()
    }
    let client = ProtocolClient.scripted(transport)
    let stream = client.bidirectionalStream(.bidirectional)
    await started.wait()
    let task = Task { () -> Code? in
      do {
        while true { try await stream.send(Text(String(repeating: "x", count: 100_000))) }
      } catch {
        return (error as? ConnectError)?.code
      }
    }
    while transport.virtualExecutor.sync({ transport.streams[0].body.readableBytes }) == 0 {
      await Task.yield()
    }
    task.cancel()
    let code = await task.value
    XCTAssertEqual(code, .failedPrecondition)
    XCTAssertTrue(transport.streams[0].isCancelled)
    var end: String?
    for await result in stream.results { end = result.short }
    XCTAssertEqual(end, "end canceled")
  }
}
