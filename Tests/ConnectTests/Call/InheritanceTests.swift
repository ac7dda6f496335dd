import ConnectTesting
import LoopbackServer
import SwiftProtobuf
import Synchronization
import XCTest

@testable import Connect

/// What calls take along from the task that makes them.
final class InheritanceTests: XCTestCase {
  private enum TenantKey: CallContextKey { static let defaultValue = "none" }
  private typealias Request = Connect_Test_V1_EchoRequest
  private typealias Response = Connect_Test_V1_EchoResponse

  private let executor = VirtualExecutor()
  private let timeouts = Noted<Duration?>()

  /// A client of a service that takes a minute to answer.
  private func client(
    _ interceptors: [InterceptorFactory] = [],
    configure: (inout ProtocolClientConfig) -> Void = { _ in }
  ) -> ProtocolClient {
    let transport = InMemoryTransport(executor: self.executor)
    transport.onUnary(TestMethods.echo) { [timeouts] request, context in
      timeouts.add(context.timeout)
      if request.payload.text != "quick" { try await context.sleep(for: .seconds(60)) }
      return Response()
    }
    transport.onBidirectionalStream(TestMethods.converse) { [timeouts] requests, _, context in
      timeouts.add(context.timeout)
      for try await _ in requests {}
    }
    var config = ProtocolClientConfig(host: "http://service.test", interceptors: interceptors)
    configure(&config)
    return ProtocolClient(httpClient: transport, config: config)
  }

  private func deadline(in seconds: Int) -> CallDeadline {
    CallDeadline(in: .seconds(seconds), clock: self.executor.clock)
  }

  // MARK: Deadlines

  func testACallHasWhatIsLeftLessAMargin() async throws {
    let client = self.client { $0.deadlineMargin = .milliseconds(500) }
    let deadline = self.deadline(in: 10)
    self.executor.advance(by: .seconds(3))
    let response = try await self.executor.lettingTimePass {
      await CallContext.withValues {
        $0.deadline = deadline
      } operation: {
        await client.unary(TestMethods.echo, Request())
      }
    }
    XCTAssertEqual(response.code, .deadlineExceeded)
    XCTAssertEqual(self.executor.now, .milliseconds(9500))
    XCTAssertEqual(self.timeouts.values, [.milliseconds(6500)])
  }

  func testStreamsAndCallbacksHaveItToo() async throws {
    let client = self.client { $0.deadlineMargin = .zero }
    let ends = Noted<Code>()
    let stream = await CallContext.withValues {
      $0.deadline = self.deadline(in: 10)
    } operation: {
      client.unary(TestMethods.echo, Request()) { ends.add($0.code) }
      _ = client.bidirectionalStream(TestMethods.converse) { result in
        if case .complete(let code, _, _) = result { ends.add(code) }
      }
      return client.bidirectionalStream(TestMethods.converse)
    }
    self.executor.runUntilIdle()
    XCTAssertEqual(self.timeouts.values, Array(repeating: .seconds(10), count: 3))
    self.executor.advance(by: .seconds(10))
    XCTAssertEqual(ends.values, [.deadlineExceeded, .deadlineExceeded])
    let collected = try await stream.results.collected()
    XCTAssertEqual(collected.code, .deadlineExceeded)
  }

  func testTheEarlierOfTwoLimitsCounts() async throws {
    for (own, configured, expected) in [(3, nil, 3), (nil, 4, 4), (30, nil, 10), (nil, 30, 10), (30, 2, 10)]
      as [(Int?, Int?, Int)]
    {
      let client = self.client {
        $0.deadlineMargin = .zero
        $0.timeout = configured.map { .seconds($0) }
      }
      let start = self.executor.now
      let deadline = self.deadline(in: 10)
      let response = try await self.executor.lettingTimePass {
        await CallContext.withValues {
          $0.deadline = deadline
        } operation: {
          await client.unary(
            TestMethods.echo,
            Request(),
            options: CallOptions(timeout: own.map { .seconds($0) })
          )
        }
      }
      XCTAssertEqual(response.code, .deadlineExceeded)
      XCTAssertEqual(self.executor.now - start, .seconds(expected))
    }
  }

  func testADeadlineThatHasPassedTouchesNothing() async throws {
    let client = self.client()
    let deadline = self.deadline(in: 1)
    self.executor.advance(by: .seconds(2))
    let response = await CallContext.withValues {
      $0.deadline = deadline
    } operation: {
      await client.unary(TestMethods.echo, Request())
    }
    XCTAssertEqual(response.code, .deadlineExceeded)
    XCTAssertTrue(self.timeouts.values.isEmpty)
  }

  func testADeadlineOfTheCallsOwnContext() async throws {
    let client = self.client { $0.deadlineMargin = .zero }
    var options = CallOptions()
    options.context.deadline = self.deadline(in: 5)
    let response = try await self.executor.lettingTimePass { [options] in
      await client.unary(TestMethods.echo, Request(), options: options)
    }
    XCTAssertEqual(response.code, .deadlineExceeded)
    XCTAssertEqual(self.executor.now, .seconds(5))
  }

  func testACallThatIsToOutliveItsTask() async throws {
    let client = self.client()
    let deadline = self.deadline(in: 1)
    let response = try await self.executor.lettingTimePass {
      await CallContext.withValues {
        $0.deadline = deadline
      } operation: {
        await CallContext.$current.withValue(nil) { await client.unary(TestMethods.echo, Request()) }
      }
    }
    XCTAssertEqual(response.code, .ok)
    XCTAssertEqual(self.timeouts.values, [nil])
  }

  // MARK: Cancellation

  func testCancellingTheTaskCancelsWhatOthersWaitFor() async throws {
    let client = self.client()
    let codes = Noted<Code>()
    let handler = Task {
      await CallContext.withValues { _ in
      } operation: {
        client.unary(TestMethods.echo, Request()) { codes.add($0.code) }
        let inner = Task { codes.add(await client.unary(TestMethods.echo, Request()).code) }
        await inner.value
      }
    }
    try await self.executor.wait { self.timeouts.values.count == 2 }
    handler.cancel()
    await handler.value
    try await self.executor.wait { codes.values.count == 2 }
    XCTAssertEqual(codes.values, [.canceled, .canceled])
  }

  func testACallOfATaskThatIsCancelledAlready() async throws {
    let client = self.client()
    let cancellation = CallCancellation()
    cancellation.cancel()
    var options = CallOptions()
    options.context.cancellation = cancellation
    let codes = Noted<Code>()
    client.unary(TestMethods.echo, Request(), options: options) { codes.add($0.code) }
    codes.add(await client.unary(TestMethods.echo, Request(), options: options).code)
    let stream = try await client.bidirectionalStream(TestMethods.converse, options: options).results
      .collected()
    XCTAssertEqual(codes.values + [stream.code], [.canceled, .canceled, .canceled])
    XCTAssertTrue(self.timeouts.values.isEmpty)
  }

  func testCallsThatAreOverAreForgotten() async throws {
    let client = self.client()
    let cancellation = CallCancellation()
    var options = CallOptions()
    options.context.cancellation = cancellation
    for _ in 0..<1000 {
      _ = await client.unary(TestMethods.echo, .with { $0.payload.text = "quick" }, options: options)
    }
    XCTAssertLessThan(cancellation.memberCount, 100)
  }

  // MARK: Values in hooks

  func testHooksHaveTheContextOfTheCall() async throws {
    let seen = Noted<String>()
    let client = self.client([{ _ in Looking(seen: seen) }, { _ in RetryOnce() }])
    _ = await CallContext.withValues {
      $0[TenantKey.self] = "acme"
    } operation: {
      await client.unary(TestMethods.echo, .with { $0.payload.text = "quick" })
    }
    // Messages once, bytes and metrics in each attempt, and the end.
    XCTAssertEqual(seen.values.filter { $0 == "factory acme" }.count, 1)
    XCTAssertEqual(
      seen.values.filter { $0 != "factory acme" },
      [
        "request acme", "bytes acme", "metrics acme", "bytes acme", "metrics acme", "bytes end acme",
        "end acme",
      ]
    )
    XCTAssertNil(CallContext.current)
  }

  /// What the callback of a call does next is no part of that call.
  func testCallbacksHaveNoContext() async {
    let seen = Noted<String>()
    let client = self.client([{ _ in Looking(seen: Noted()) }])
    let called = Signal<Void>()
    _ = await CallContext.withValues {
      $0[TenantKey.self] = "acme"
    } operation: {
      client.unary(TestMethods.echo, .with { $0.payload.text = "quick" }) { _ in
        seen.add("unary \(CallContext.current?[TenantKey.self] ?? "-")")
        called.fire(())
      }
    }
    await called.wait()
    await CallContext.withValues {
      $0[TenantKey.self] = "acme"
    } operation: {
      let handle = client.bidirectionalStream(TestMethods.converse) { result in
        seen.add("stream \(CallContext.current?[TenantKey.self] ?? "-")")
        if case .complete = result { called.fire(()) }
      }
      handle.finish()
    }
    await called.wait()
    XCTAssertEqual(seen.values, ["unary -", "stream -", "stream -"])
  }

  func testHooksOfStreamsToo() async throws {
    let seen = Noted<String>()
    let client = self.client([{ _ in Looking(seen: seen) }])
    try await CallContext.withValues {
      $0[TenantKey.self] = "acme"
    } operation: {
      let stream = client.bidirectionalStream(TestMethods.converse)
      try await stream.send(.with { $0.payload.text = "a" })
      stream.finish()
      _ = try await stream.results.collected()
    }
    self.executor.runUntilIdle()
    XCTAssertEqual(
      Set(seen.values),
      ["factory acme", "request acme", "message acme", "result acme", "metrics acme"]
    )
  }

  /// What a hook sets is bound for request hooks further inside; an explicit value of the call goes first.
  func testOptionsAndHooksChangeTheContext() async throws {
    let seen = Noted<String>()
    let client = self.client([{ _ in SetTenant(name: "hook") }, { _ in Looking(seen: seen) }])
    var options = CallOptions()
    options.context[TenantKey.self] = "options"
    _ = await CallContext.withValues {
      $0[TenantKey.self] = "acme"
    } operation: { [options] in
      await client.unary(TestMethods.echo, .with { $0.payload.text = "quick" }, options: options)
    }
    XCTAssertEqual(seen.values.first { $0.hasPrefix("request") }, "request hook")
    XCTAssertEqual(seen.values.last, "end options")
  }

  func testNothingIsBoundWhereNothingIsInherited() async throws {
    let seen = Noted<String>()
    let client = self.client([{ _ in Looking(seen: seen) }])
    var options = CallOptions()
    options.context[TenantKey.self] = "options"
    _ = await client.unary(TestMethods.echo, .with { $0.payload.text = "quick" }, options: options)
    XCTAssertEqual(Set(seen.values.map { $0.split(separator: " ").last }), ["-"])
  }

  func testPropagatorsTakeTaskLocalValuesAlong() async throws {
    let seen = Noted<String>()
    let client = self.client([{ _ in Looking(seen: seen, looksAtLetters: true) }]) {
      $0.contextPropagators = [LetterPropagator(key: 0), LetterPropagator(key: 1)]
    }
    await Letters.$first.withValue("a") {
      await Letters.$second.withValue("b") {
        _ = await client.unary(TestMethods.echo, .with { $0.payload.text = "quick" })
      }
    }
    XCTAssertEqual(Set(seen.values.filter { $0.hasPrefix("letters") }), ["letters ab"])
    XCTAssertEqual(seen.values.count { $0.hasPrefix("letters") }, 6)
  }

  /// A propagator that has nothing to bind may forget to run the hook.
  func testHooksRunWithAPropagatorThatDoesNotRunThem() async {
    struct Forgetful: ContextPropagator {
      private enum Key: CallContextKey { static let defaultValue = false }

      func capture(into context: inout CallContext) { context[Key.self] = true }
      func bind(_ context: CallContext, around hook: () -> Void) {}
    }
    let events = Events()
    let interceptors = [
      TestInterceptor.make { interceptor in
        interceptor.call.requestFunction = { _ in events.add("call >") }
        interceptor.call.outcomeFunction = { events.add("call < \($0.code)") }
        interceptor.unaryMessages = UnaryMessageFunction(
          updateRequest: { _ in events.add("update >") },
          updateResponse: { response in
            events.add("update < \(response.code)")
            return .proceed
          }
        )
        interceptor.unaryBytes.requestFunction = { request, proceed in
          events.add("bytes >")
          proceed(.success(request))
        }
      }
    ]
    let client = ProtocolClient.scripted(.echo(), interceptors: interceptors) {
      $0.contextPropagators = [Forgetful()]
    }
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(events.all, ["call >", "update >", "bytes >", "update < ok", "call < ok"])
    let failing = ProtocolClient.scripted(
      .echo(),
      interceptors: [
        TestInterceptor.make { $0.call.requestFunction = { _ in throw ConnectError(code: .aborted) } }
      ]
    ) { $0.contextPropagators = [Forgetful()] }
    let failed = await failing.unary(.unary, "x")
    XCTAssertEqual(failed.error?.code, .aborted)
  }

  /// A call that a hook makes, say for a token, has no more time than the one that it is made for.
  func testCallsOfHooksInherit() async throws {
    let inner = self.client { $0.deadlineMargin = .seconds(1) }
    let codes = Noted<Code>()
    let outer = self.client([{ _ in CallFirst(client: inner, codes: codes) }]) { $0.deadlineMargin = .zero }
    let deadline = self.deadline(in: 10)
    let response = try await self.executor.lettingTimePass {
      await CallContext.withValues {
        $0.deadline = deadline
      } operation: {
        await outer.unary(TestMethods.echo, Request(), options: CallOptions(timeout: .seconds(5)))
      }
    }
    XCTAssertEqual(codes.values, [.deadlineExceeded])
    XCTAssertEqual(response.code, .deadlineExceeded)
    XCTAssertEqual(self.timeouts.values, [.seconds(4), .seconds(1)])
    XCTAssertEqual(self.executor.now, .seconds(5))
  }

  func testEachOfManyCallsHasItsOwn() async throws {
    let mismatches = Noted<String>()
    let client = self.client([{ _ in CompareTenant(mismatches: mismatches) }])
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<1000 {
        group.addTask {
          await CallContext.withValues {
            $0[TenantKey.self] = "\(number)"
          } operation: {
            _ = await client.unary(TestMethods.echo, .with { $0.payload.text = "quick" })
          }
        }
      }
    }
    XCTAssertEqual(mismatches.values, [])
  }

  // MARK: Interceptors

  private struct Looking: Interceptor {
    let seen: Noted<String>

    let looksAtLetters: Bool

    init(seen: Noted<String>, looksAtLetters: Bool = false) {
      self.seen = seen
      self.looksAtLetters = looksAtLetters
      self.look("factory")
    }

    private func look(_ hook: String) {
      self.seen.add("\(hook) \(CallContext.current?[TenantKey.self] ?? "-")")
      if self.looksAtLetters { self.seen.add("letters \(Letters.first)\(Letters.second)") }
    }

    func unaryFunction() -> UnaryFunction {
      UnaryFunction(
        requestFunction: { request, proceed in
          self.look("bytes")
          proceed(.success(request))
        },
        responseFunction: { response, proceed in
          self.look("bytes end")
          proceed(response)
        },
        responseMetricsFunction: { metrics, proceed in
          self.look("metrics")
          proceed(metrics)
        }
      )
    }

    func unaryMessageFunction<Input, Output>(
      _ method: MethodSpec<Input, Output>
    ) -> UnaryMessageFunction<Input, Output> {
      UnaryMessageFunction(
        requestFunction: { request, proceed in
          self.look("request")
          proceed(.success(request))
        },
        responseFunction: { response, proceed in
          self.look("end")
          proceed(response)
        }
      )
    }

    func streamFunction() -> StreamFunction {
      StreamFunction(responseMetricsFunction: { metrics, proceed in
        self.look("metrics")
        proceed(metrics)
      })
    }

    func streamMessageFunction<Input, Output>(
      _ method: MethodSpec<Input, Output>
    ) -> StreamMessageFunction<Input, Output> {
      StreamMessageFunction(
        requestFunction: { request, proceed in
          self.look("request")
          proceed(.success(request))
        },
        requestMessageFunction: { message, proceed in
          self.look("message")
          proceed(message)
        },
        streamResultFunction: { result, proceed in
          self.look("result")
          proceed(result)
        }
      )
    }
  }

  /// Sends everything twice.
  private final class RetryOnce: Interceptor {
    private var hasRetried = false

    func unaryFunction() -> UnaryFunction {
      UnaryFunction(responseFunction: { response, proceed in
        if self.hasRetried { return proceed(response) }
        self.hasRetried = true
        proceed.retry()
      })
    }
  }

  private struct SetTenant: Interceptor {
    let name: String

    func unaryMessageFunction<Input, Output>(
      _ method: MethodSpec<Input, Output>
    ) -> UnaryMessageFunction<Input, Output> {
      UnaryMessageFunction(requestFunction: { request, proceed in
        var request = request
        request.context[TenantKey.self] = self.name
        proceed(.success(request))
      })
    }
  }

  private struct CompareTenant: Interceptor {
    let mismatches: Noted<String>

    func unaryFunction() -> UnaryFunction {
      UnaryFunction(requestFunction: { request, proceed in
        let (current, own) = (CallContext.current?[TenantKey.self], request.context[TenantKey.self])
        if current != own { self.mismatches.add("\(current ?? "-") is not \(own)") }
        proceed(.success(request))
      })
    }
  }

  private struct CallFirst: Interceptor {
    let client: ProtocolClient
    let codes: Noted<Code>

    func unaryFunction() -> UnaryFunction {
      UnaryFunction(requestFunction: { request, proceed in
        self.client.unary(TestMethods.echo, Request()) { response in
          self.codes.add(response.code)
          proceed(.success(request))
        }
      })
    }
  }
}

private enum Letters {
  @TaskLocal static var first = ""
  @TaskLocal static var second = ""
}

private struct LetterPropagator: ContextPropagator {
  private enum FirstKey: CallContextKey { static let defaultValue = "" }
  private enum SecondKey: CallContextKey { static let defaultValue = "" }

  let key: Int

  func capture(into context: inout CallContext) {
    if self.key == 0 {
      context[FirstKey.self] = Letters.first
    } else {
      context[SecondKey.self] = Letters.second
    }
  }

  func bind(_ context: CallContext, around hook: () -> Void) {
    if self.key == 0 {
      Letters.$first.withValue(context[FirstKey.self], operation: hook)
    } else {
      Letters.$second.withValue(context[SecondKey.self], operation: hook)
    }
  }
}

private final class Noted<Value: Sendable>: Sendable {
  private let state = Mutex<[Value]>([])

  var values: [Value] { self.state.withLock { $0 } }

  func add(_ value: Value) { self.state.withLock { $0.append(value) } }
}
