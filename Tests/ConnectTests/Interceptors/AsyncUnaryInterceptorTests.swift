import Connect
import ConnectTesting
import NIOCore
import XCTest

/// Interceptors of unary calls in their async form.
final class AsyncUnaryInterceptorTests: XCTestCase {
  @TaskLocal static var trace = "none"

  private static let failing: ScriptedTransport.Script = { $0.reply(.unavailable) }
  private static let fine: ScriptedTransport.Script = { $0.reply($0.sentMessage) }

  func testMixedWithClosures() async {
    let probe = InterceptorProbe()
    let client = ProtocolClient.scripted(
      .echo(),
      interceptors: [
        probe.factory("A", levels: [.async]), probe.factory("B"), probe.factory("C", levels: [.async]),
      ]
    )
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(
      probe.events.outline,
      [
        "A async request", "B message request", "C async request", "B byte request",
        "B byte response ok", "C async response ok", "B message response ok", "A async response ok",
      ]
    )
  }

  func testTheyRunOnTheExecutorIfItRunsTasks() async throws {
    for runsTasks in [false, true] {
      let events = Events()
      let transport = ScriptedTransport(Self.fine, executor: VirtualExecutor(runsTasks: runsTasks))
      let factories = ["A", "B"].map { name in
        TestAsyncInterceptor.unary { request, next in
          events.add("\(name) \(transport.executor.isCurrent)")
          return try await next(request)
        }
      }
      let client = ProtocolClient.scripted(transport, interceptors: factories)
      let response = await client.unary(.unary, "x")
      XCTAssertEqual(response.message, "x")
      let called = await client.outcome(of: "x").outcome.wait()
      XCTAssertEqual(called.message, "x")
      let expected = ["A \(runsTasks)", "B \(runsTasks)"]
      XCTAssertEqual(events.all, expected + expected)
    }
  }

  func testTheyRunWhereTheirCallerPrefers() async {
    let seen = Box<[UnownedTaskExecutor?]>([])
    @Sendable func look() {
      let executor = withUnsafeCurrentTask { $0?.unownedTaskExecutor }
      seen.value.append(executor)
    }
    let factory = TestAsyncInterceptor.unary { request, next in
      look()
      let response = try await next(request)
      look()
      return response
    }
    let client = ProtocolClient.scripted(ScriptedTransport(Self.fine), interceptors: [factory, factory])
    let executor = client.taskExecutor
    let preferred = await withTaskExecutorPreference(executor) { await client.unary(.unary, "x") }
    XCTAssertEqual(preferred.message, "x")
    XCTAssertEqual(seen.value, Array(repeating: executor.asUnownedTaskExecutor(), count: 4))
    seen.value = []
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(seen.value, [nil, nil, nil, nil])
  }

  func testChangesFailsAndAnswers() async {
    let transport = ScriptedTransport.echo()
    let probe = InterceptorProbe()
    func call(_ body: @escaping TestAsyncInterceptor.Unary) async -> ResponseMessage<Text> {
      await ProtocolClient.scripted(
        transport,
        interceptors: [
          probe.factory("A"), TestAsyncInterceptor.unary(body),
          probe.factory("C"),
        ]
      ).unary(.unary, "x")
    }
    let changed = await call { request, next in
      var request = request
      request.message = "y"
      var response = try await next(request)
      response.headers.add(name: "x-added", value: "1")
      return response
    }
    XCTAssertEqual(changed.message, "y")
    XCTAssertEqual(changed.headers["x-added"], ["1"])
    XCTAssertEqual(transport.streams.count, 1)

    let answered = await call { _, _ in ResponseMessage(message: "cached") }
    XCTAssertEqual(answered.message, "cached")
    let failed = await call { _, _ in throw ConnectError(code: .aborted) }
    XCTAssertEqual(failed.error?.code, .aborted)
    struct Other: Error {}
    let other = await call { _, _ in throw Other() }
    XCTAssertEqual(other.error?.code, .unknown)
    XCTAssertTrue(other.error?.exception is Other)
    XCTAssertEqual(transport.streams.count, 1)
    XCTAssertEqual(
      probe.events.outline.suffix(6),
      [
        "A message request", "A message response ok", "A message request", "A message response aborted",
        "A message request", "A message response unknown",
      ]
    )
  }

  // MARK: Retry

  func testNextAgainStartsAtTheHookBehind() async {
    let probe = InterceptorProbe()
    let transport = ScriptedTransport.replying([Self.failing, Self.fine])
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        probe.factory("A"),
        TestAsyncInterceptor.unary { request, next in
          let response = try await next(request)
          return response.error == nil ? response : try await next(request)
        },
        probe.factory("C"),
      ]
    )
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(
      probe.events.outline,
      [
        "A message request",
        "C message request", "A byte request", "C byte request",
        "C byte response unavailable", "A byte response unavailable", "C message response unavailable",
        "C message request", "A byte request", "C byte request",
        "C byte response ok", "A byte response ok", "C message response ok",
        "A message response ok",
      ]
    )
  }

  func testTheCapGivesTheLastResponseAgain() async {
    let count = Box(0)
    let transport = ScriptedTransport { $0.reply(.unavailable, "attempt \(count.increment())") }
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestAsyncInterceptor.unary { request, next in
          var response = try await next(request)
          for _ in 0..<10 { response = try await next(request) }
          return response
        }
      ]
    )
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.error?.message, "attempt 4")
    XCTAssertEqual(transport.streams.count, 4)
  }

  func testNextWhileAnEarlierOneIsPending() async {
    let pending = Signal<ConnectError?>()
    let started = Signal<ScriptedStream>()
    let transport = ScriptedTransport { started.fire($0) }
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestAsyncInterceptor.unary { request, next in
          async let first = next(request)
          let stream = await started.wait()
          do {
            _ = try await next(request)
            pending.fire(nil)
          } catch {
            pending.fire(error as? ConnectError)
          }
          transport.virtualExecutor.execute { stream.reply("\"first\"") }
          return try await first
        }
      ]
    )
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.message, "first")
    let error = await pending.wait()
    XCTAssertEqual(error?.code, .internalError)
    XCTAssertEqual(transport.streams.count, 1)
  }

  func testAnOuterOneIsCancelledAndCalledAfreshWhenAnInnerHookRetries() async {
    let events = Events()
    let thrown = Signal<Bool>()
    let transport = ScriptedTransport.replying([Self.failing, Self.fine])
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestAsyncInterceptor.unary { request, next in
          events.add("request")
          do {
            let response = try await next(request)
            events.add("response \(response.code)")
            return response
          } catch {
            thrown.fire(error is CancellationError && Task.isCancelled)
            return ResponseMessage(message: "discarded")
          }
        },
        TestInterceptor.make { interceptor in
          interceptor.unaryMessages.responseFunction = { response, proceed in
            if response.error != nil { proceed.retry() } else { proceed(response) }
          }
        },
      ]
    )
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(events.all, ["request", "request", "response ok"])
    let wasCancelled = await thrown.wait()
    XCTAssertTrue(wasCancelled)
  }

  func testCancellingASubTaskAroundNextCancelsTheAttempt() async {
    let started = Signal<ScriptedStream>()
    let transport = ScriptedTransport { started.fire($0) }
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestAsyncInterceptor.unary { request, next in
          let attempt = Task { try await next(request) }
          let stream = await started.wait()
          attempt.cancel()
          let result = await attempt.result
          guard case .failure(let error) = result, error is CancellationError else { return try result.get() }
          XCTAssertTrue(transport.virtualExecutor.sync { stream.isCancelled })
          return ResponseMessage(message: "otherwise")
        }
      ]
    )
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.message, "otherwise")
  }

  func testNextAgainAfterACancelledOneCountsAgainstTheCap() async {
    let started = Signal<ScriptedStream>()
    let transport = ScriptedTransport { started.fire($0) }
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestAsyncInterceptor.unary { request, next in
          for _ in 0..<4 {
            let attempt = Task { try await next(request) }
            _ = await started.wait()
            attempt.cancel()
            _ = await attempt.result
          }
          return try await next(request)
        }
      ]
    )
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.error?.code, .resourceExhausted)
    XCTAssertEqual(transport.streams.count, 4)
    XCTAssertTrue(transport.streams.allSatisfy(\.isCancelled))
  }

  /// The response of an attempt that was given up goes away while that of the next one takes its place.
  func testAnErrorThatEndsTheCallWhenItGoesAway() async {
    final class Canceller: Error, Sendable {
      private let cancellation: CallCancellation

      init(_ cancellation: CallCancellation) { self.cancellation = cancellation }

      deinit { self.cancellation.cancel() }
    }
    var options = CallOptions()
    let cancellation = CallCancellation()
    options.context.cancellation = cancellation
    let visited = Signal<Void>()
    let kept = Box<[UnaryMessageFunction<Text, Text>.ResponseProceed]>([])
    let attempts = Box(0)
    let client = ProtocolClient.scripted(
      .echo(),
      interceptors: [
        TestAsyncInterceptor.unary { request, next in
          let attempt = Task { try await next(request) }
          await visited.wait()
          attempt.cancel()
          _ = await attempt.result
          return try await next(request)
        },
        TestInterceptor.make { interceptor in
          interceptor.unaryMessages.responseFunction = { _, proceed in
            kept.value.append(proceed)
            visited.fire(())
          }
        },
        TestInterceptor.make { interceptor in
          interceptor.unaryBytes.requestFunction = { _, proceed in
            attempts.value += 1
            let exception = attempts.value == 1 ? Canceller(cancellation) : nil
            proceed(.failure(ConnectError(code: .unavailable, exception: exception)))
          }
        },
      ]
    )
    let response = await client.unary(.unary, "x", options: options)
    XCTAssertEqual(response.error?.code, .canceled)
    // The call ends with the first attempt's error, whether that goes away before or after the second attempt.
    XCTAssertLessThanOrEqual(attempts.value, 2)
    for proceed in kept.exchange([]) { proceed(ResponseMessage(message: "late")) }
  }

  // MARK: Task-local values

  private func tracing(_ events: Events) -> [InterceptorFactory] {
    [
      TestAsyncInterceptor.unary { request, next in
        events.add("A \(Self.trace)")
        return try await Self.$trace.withValue("outer") { try await next(request) }
      },
      TestInterceptor.make { interceptor in
        interceptor.unaryMessages.requestFunction = { request, proceed in
          Task.detached { proceed(.success(request)) }
        }
        interceptor.unaryMessages.responseFunction = { response, proceed in
          if response.error != nil { proceed.retry() } else { proceed(response) }
        }
      },
      TestAsyncInterceptor.unary { request, next in
        events.add("B \(Self.trace)")
        let response = try await next(request)
        events.add("B again \(Self.trace)")
        return response
      },
    ]
  }

  func testTaskLocalValuesOfTheCallerAndOfOuterInterceptors() async {
    let expected = ["A caller", "B outer", "B again outer", "A caller", "B outer", "B again outer"]
    for isCallback in [false, true] {
      let events = Events()
      let transport = ScriptedTransport.replying([Self.failing, Self.fine])
      let client = ProtocolClient.scripted(transport, interceptors: self.tracing(events))
      let response = await Self.$trace.withValue("caller") {
        isCallback ? await client.outcome(of: "x").outcome.wait() : await client.unary(.unary, "x")
      }
      XCTAssertEqual(response.message, "x")
      XCTAssertEqual(events.all, expected, "callback: \(isCallback)")
    }
  }

  // MARK: The end

  func testTheDeadlineReachesAllThatWait() async {
    let seen = Signal<String>()
    let started = Signal<Void>()
    let transport = ScriptedTransport { _ in started.fire() }
    let body: @Sendable (String) -> InterceptorFactory = { name in
      TestAsyncInterceptor.unary { request, next in
        let response = try await next(request)
        seen.fire("\(name) \(response.code) \(Task.isCancelled)")
        return ResponseMessage(message: "ignored")
      }
    }
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [body("A"), body("B")],
      timeout: .seconds(1)
    )
    let outcome = client.outcome(of: "x").outcome
    await started.wait()
    transport.virtualExecutor.advance(by: .seconds(1))
    let response = await outcome.wait()
    XCTAssertEqual(response.error?.code, .deadlineExceeded)
    let both = await [seen.wait(), seen.wait()].sorted()
    XCTAssertEqual(both, ["A deadline_exceeded true", "B deadline_exceeded true"])
    XCTAssertTrue(transport.streams[0].isCancelled)
    XCTAssertEqual(outcome.count, 0)
  }

  /// An inner interceptor runs in the task of the outer one. One that does not hear of the end holds the outer one, not the
  /// caller.
  func testAnInnerOneThatHangsDoesNotHoldTheCaller() async {
    let entered = Signal<Void>()
    let release = Signal<Void>()
    let left = Signal<String>()
    let transport = ScriptedTransport.echo()
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestAsyncInterceptor.unary { request, next in
          let response = try await next(request)
          left.fire("A \(response.code) \(Task.isCancelled)")
          return response
        },
        TestAsyncInterceptor.unary { request, next in
          entered.fire()
          await release.wait()
          left.fire("B \(Task.isCancelled)")
          return try await next(request)
        },
      ],
      timeout: .seconds(1)
    )
    let outcome = client.outcome(of: "x").outcome
    await entered.wait()
    transport.virtualExecutor.advance(by: .seconds(1))
    let response = await outcome.wait()
    XCTAssertEqual(response.error?.code, .deadlineExceeded)
    XCTAssertEqual(left.count, 0)
    release.fire()
    let both = await [left.wait(), left.wait()]
    XCTAssertEqual(both, ["B true", "A deadline_exceeded true"])
    XCTAssertEqual(transport.streams.count, 0)
  }

  func testCancellingTheTaskEndsAnInterceptorThatWaitsElsewhere() async {
    let entered = Signal<Void>()
    let left = Signal<Bool>()
    let transport = ScriptedTransport.echo()
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestAsyncInterceptor.unary { request, next in
          entered.fire()
          try? await Task.sleep(for: .seconds(3600))
          left.fire(Task.isCancelled)
          return try await next(request)
        }
      ]
    )
    let task = Task { await client.unary(.unary, "x") }
    await entered.wait()
    task.cancel()
    let response = await task.value
    XCTAssertEqual(response.error?.code, .canceled)
    let wasCancelled = await left.wait()
    XCTAssertTrue(wasCancelled)
    XCTAssertEqual(transport.streams.count, 0)
  }
}
