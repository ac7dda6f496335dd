import Connect
import ConnectTesting
import NIOCore
import XCTest

/// Interceptors of streams in their async form.
final class AsyncStreamInterceptorTests: XCTestCase {
  @TaskLocal static var trace = "none"

  private static let failing: ScriptedTransport.Script = { stream in
    stream.onFinish = { $0.fail(ConnectError(code: .unavailable)) }
  }

  func testMapsMessagesAndErrorsAmongClosures() async {
    let probe = InterceptorProbe()
    let transport = ScriptedTransport { stream in
      stream.onFinish = { stream in
        stream.respondStream()
        for message in stream.sentMessages { stream.sendMessage(message) }
        stream.endStream(.unavailable)
      }
    }
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        probe.factory("A", levels: [.message]),
        TestAsyncInterceptor.stream { request, next in
          try await next(request.map { Text($0.text + "1") })
            .map { Text($0.text + "2") }
            .mapErrors { ConnectError(code: .aborted, message: $0.message) }
        },
        probe.factory("C", levels: [.message]),
      ]
    )
    let results = await client.results()
    XCTAssertEqual(results, ["headers", "a12", "b12", "end aborted"])
    XCTAssertEqual(transport.streams[0].sentMessages, ["\"a1\"", "\"b1\""])
    XCTAssertEqual(
      probe.events.map(\.short).filter { $0.contains("<") },
      ["headers", "a1", "b1", "end"].flatMap { result in
        result == "end"
          ? ["C < end unavailable", "A < end aborted"]
          : ["C < \(result)", "A < \(result == "headers" ? result : result + "2")"]
      }
    )
  }

  func testTheyRunWhereTheirCallerPrefers() async {
    let seen = Box<[UnownedTaskExecutor?]>([])
    @Sendable func look() {
      let executor = withUnsafeCurrentTask { $0?.unownedTaskExecutor }
      seen.value.append(executor)
    }
    let factory = TestAsyncInterceptor.stream { request, next in
      look()
      let messages = request.map { message in
        look()
        return message
      }
      let response = try await next(messages)
      look()
      return response
    }
    let transport = ScriptedTransport(StreamChainTests.echo)
    let client = ProtocolClient.scripted(transport, interceptors: [factory, factory])
    let executor = client.taskExecutor
    let results = await withTaskExecutorPreference(executor) { await client.results(sending: ["x"]) }
    XCTAssertEqual(results, ["headers", "x", "end ok"])
    XCTAssertEqual(seen.value, Array(repeating: executor.asUnownedTaskExecutor(), count: 6))
  }

  func testAnswersWithoutNextAndThrows() async {
    let transport = ScriptedTransport.silent()
    let answering = ProtocolClient.scripted(
      transport,
      interceptors: [TestAsyncInterceptor.stream { _, _ in StreamResponse(StreamAnswer(messages: ["1"])) }]
    )
    let answered = await answering.results()
    XCTAssertEqual(answered, ["headers", "1", "end ok"])
    let throwing = ProtocolClient.scripted(
      transport,
      interceptors: [TestAsyncInterceptor.stream { _, _ in throw ConnectError(code: .aborted) }]
    )
    let thrown = await throwing.results()
    XCTAssertEqual(thrown, ["end aborted"])
    let short = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestAsyncInterceptor.stream { _, _ in StreamResponse(results: PulledSequence([.message("1")])) }
      ]
    )
    let completed = await short.results()
    XCTAssertEqual(completed, ["1", "end ok"])
    XCTAssertEqual(transport.streams.count, 0)
  }

  func testAnErrorOfTheRequestsMessagesIsTheEnd() async {
    let client = ProtocolClient.scripted(
      .silent(),
      interceptors: [
        TestAsyncInterceptor.stream { request, next in
          try await next(request.map { _ in throw ConnectError(code: .aborted) })
        },
        TestInterceptor.make { interceptor in
          interceptor.streamMessages.streamResultFunction = { result, proceed in proceed(result) }
        },
      ]
    )
    let results = await client.results()
    XCTAssertEqual(results, ["end aborted"])
  }

  func testNothingIsReadThatNobodyAskedFor() async {
    let read = Box(0)
    let transport = ScriptedTransport { stream in
      stream.respondStream()
      for index in 0..<100 { stream.sendMessage("\"\(index)\"") }
    }
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestAsyncInterceptor.stream { request, next in try await next(request) },
        TestAsyncInterceptor.stream { request, next in
          try await next(request).map { message in
            _ = read.increment()
            return message
          }
        },
      ]
    )
    let stream = client.serverStream(.serverStream, "go")
    var iterator = stream.results.makeAsyncIterator()
    for (expected, count) in [("headers", 0), ("0", 1), ("1", 2)] {
      let result = await iterator.next()
      XCTAssertEqual(result?.short, expected)
      transport.virtualExecutor.runUntilIdle()
      XCTAssertEqual(read.value, count)
    }
    XCTAssertGreaterThan(transport.streams[0].unconsumed, 90 * 6)
  }

  // MARK: Retry

  /// Calls `next` again as long as the first result is a failure.
  private static let retrying = TestAsyncInterceptor.stream { request, next in
    while true {
      let response = try await next(request)
      var iterator = response.results.makeAsyncIterator()
      let first = try await iterator.next()
      if case .complete(_, .some, _)? = first { continue }
      return StreamResponse(results: PulledSequence([first].compactMap { $0 }).followed(by: response.results))
    }
  }

  func testNextAgainSendsTheMessagesAgain() async {
    let probe = InterceptorProbe()
    let transport = ScriptedTransport.replying([Self.failing, Self.failing, StreamChainTests.echo])
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        probe.factory("A", levels: [.message]), Self.retrying,
        probe.factory("C", levels: [.message]),
      ]
    )
    let results = await client.results()
    XCTAssertEqual(results, ["headers", "a", "b", "end ok"])
    XCTAssertEqual(transport.streams.map(\.sentMessages), Array(repeating: ["\"a\"", "\"b\""], count: 3))
    XCTAssertEqual(probe.events.count { $0.short == "A > a" }, 1)
    XCTAssertEqual(probe.events.count { $0.short == "C > a" }, 3)
    XCTAssertEqual(probe.events.count { $0.short == "C < end unavailable" }, 2)
    XCTAssertEqual(probe.events.count { $0.short == "A < end unavailable" }, 0)
  }

  func testMessagesSentWhileAnInnerFailureGoesUpAreNotLost() async {
    let heads = Box(0)
    let transport = ScriptedTransport(StreamChainTests.echo)
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        Self.retrying,
        TestInterceptor.make { interceptor in
          interceptor.streamMessages.requestFunction = { request, proceed in
            if heads.increment() == 1 {
              proceed(.failure(ConnectError(code: .unavailable)))
            } else {
              proceed(.success(request))
            }
          }
        },
      ]
    )
    // All are sent before anything is read, so the failure has not yet gone up.
    let results = await client.results(sending: ["a", "b", "c"])
    XCTAssertEqual(results, ["headers", "a", "b", "c", "end ok"])
  }

  func testTheCapReportsTheLastError() async {
    let count = Box(0)
    let transport = ScriptedTransport {
      $0.fail(ConnectError(code: .unavailable, message: "\(count.increment())"))
    }
    let client = ProtocolClient.scripted(transport, interceptors: [Self.retrying])
    do {
      for try await _ in client.serverStream(.serverStream, "x").messages {}
      XCTFail("no error")
    } catch {
      XCTAssertEqual((error as? ConnectError)?.message, "4")
    }
    XCTAssertEqual(transport.streams.count, 4)
  }

  func testReplayOverflowIsRefused() async {
    let transport = ScriptedTransport(Self.failing)
    let client = ProtocolClient.scripted(transport, interceptors: [Self.retrying]) {
      $0.retries.maximumReplayBytes = 10
    }
    let fits = await client.results(sending: ["1", "2", "3"])
    XCTAssertEqual(fits, ["end unavailable"])
    XCTAssertEqual(transport.streams.count, 4)
    let large = await client.results(sending: ["1", "22222222222", "3"])
    XCTAssertEqual(large, ["end unavailable"])
    XCTAssertEqual(transport.streams.count, 5)
  }

  func testNextWhileTheResultsOfAnEarlierOneHaveNotEnded() async {
    let seen = Signal<Code?>()
    let client = ProtocolClient.scripted(
      ScriptedTransport(StreamChainTests.echo),
      interceptors: [
        TestAsyncInterceptor.stream { request, next in
          let response = try await next(request)
          do {
            _ = try await next(request)
            seen.fire(nil)
          } catch {
            seen.fire((error as? ConnectError)?.code)
          }
          return response
        }
      ]
    )
    let results = await client.results()
    XCTAssertEqual(results, ["headers", "a", "b", "end ok"])
    let code = await seen.wait()
    XCTAssertEqual(code, .internalError)
  }

  func testCancellingASubTaskThatReadsCancelsTheAttempt() async {
    let started = Signal<ScriptedStream>()
    let transport = ScriptedTransport { started.fire($0) }
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestAsyncInterceptor.stream { request, next in
          let response = try await next(request)
          let stream = await started.wait()
          let reading = Task {
            var iterator = response.results.makeAsyncIterator()
            return try await iterator.next()
          }
          reading.cancel()
          let result = await reading.result
          guard case .failure(let error) = result, error is CancellationError else { return response }
          XCTAssertTrue(transport.virtualExecutor.sync { stream.isCancelled })
          return StreamResponse(StreamAnswer(messages: ["otherwise"]))
        }
      ]
    )
    let results = await client.results(sending: [])
    XCTAssertEqual(results, ["headers", "otherwise", "end ok"])
  }

  // MARK: Task-local values

  func testTaskLocalValues() async {
    let events = Events()
    let transport = ScriptedTransport.replying([Self.failing, StreamChainTests.echo])
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestAsyncInterceptor.stream { request, next in
          events.add("A \(Self.trace)")
          return try await Self.$trace.withValue("outer") { try await next(request) }
        },
        TestInterceptor.make { interceptor in
          interceptor.streamMessages = StreamMessageFunction(
            requestFunction: { request, proceed in Task.detached { proceed(.success(request)) } },
            streamResultFunction: { result, proceed in
              if case .complete(_, .some, _) = result { proceed.retry() } else { proceed(result) }
            }
          )
        },
        TestAsyncInterceptor.stream { request, next in
          events.add("B \(Self.trace)")
          return try await next(request)
        },
      ]
    )
    let results = await Self.$trace.withValue("caller") { await client.results() }
    XCTAssertEqual(results, ["headers", "a", "b", "end ok"])
    XCTAssertEqual(events.all, ["A caller", "B outer", "A caller", "B outer"])
  }

  // MARK: The end

  func testTheDeadlineReachesWhoReads() async {
    let seen = Signal<String>()
    let started = Signal<Void>()
    let transport = ScriptedTransport { _ in started.fire() }
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestAsyncInterceptor.stream { request, next in
          try await next(request).mapErrors { error in
            seen.fire("\(error.code)")
            return ConnectError(code: .dataLoss)
          }
        }
      ],
      timeout: .seconds(1)
    )
    let results = Signal<String>()
    client.serverStream(.serverStream, "x") { results.fire($0.short) }
    await started.wait()
    transport.virtualExecutor.runUntilIdle()
    // The interceptor reads in a task of its own; the deadline may pass before it has begun to.
    transport.virtualExecutor.advance(by: .seconds(1))
    let end = await results.wait()
    XCTAssertEqual(end, "end deadline_exceeded")
    XCTAssertTrue(transport.streams[0].isCancelled)
    XCTAssertEqual(results.count, 0)
    if seen.count > 0 {
      let error = await seen.wait()
      XCTAssertEqual(error, "deadline_exceeded")
    }
  }

  func testDroppingTheStreamReleasesTheCall() async throws {
    let started = Signal<Void>()
    let transport = ScriptedTransport { _ in started.fire() }
    weak var leaked: Events?
    do {
      let kept = Events()
      leaked = kept
      let client = ProtocolClient.scripted(
        transport,
        interceptors: [
          TestAsyncInterceptor.stream { request, next in
            kept.add("x")
            return try await next(request)
          }
        ]
      )
      let stream = client.serverStream(.serverStream, "x")
      await started.wait()
      withExtendedLifetime(stream) {}
    }
    transport.virtualExecutor.runUntilIdle()
    XCTAssertTrue(transport.streams[0].isCancelled)
    // The interceptor's task lets go of it on a thread of the pool.
    try await transport.virtualExecutor.wait { leaked == nil }
    XCTAssertNil(leaked)
  }
}

extension PulledSequence {
  /// The elements of this sequence and then those of `other`.
  func followed(by other: PulledSequence) -> PulledSequence {
    PulledSequence(Chained(first: self, second: other))
  }

  private struct Chained: AsyncSequence, Sendable {
    let first: PulledSequence
    let second: PulledSequence

    struct AsyncIterator: AsyncIteratorProtocol {
      var first: PulledSequence.AsyncIterator?
      var second: PulledSequence.AsyncIterator

      mutating func next() async throws -> Element? {
        if let element = try await self.first?.next() { return element }
        self.first = nil
        return try await self.second.next()
      }
    }

    func makeAsyncIterator() -> AsyncIterator {
      AsyncIterator(first: self.first.makeAsyncIterator(), second: self.second.makeAsyncIterator())
    }
  }
}
