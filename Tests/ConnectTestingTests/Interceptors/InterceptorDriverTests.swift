import Connect
import ConnectTesting
import NIOCore
import Synchronization
import XCTest

/// Byte and message hooks of closure interceptors, driven without a client.
final class InterceptorDriverTests: XCTestCase {
  private let unavailable = ConnectError(code: .unavailable, message: "try later")

  private func hooks(
    _ configure: @escaping @Sendable (inout HooksInterceptor) -> Void
  ) -> InterceptorDriver {
    InterceptorDriver(patience: .milliseconds(10)) { _ in
      var interceptor = HooksInterceptor()
      configure(&interceptor)
      return interceptor
    }
  }

  // MARK: Outcomes

  func testCallHooks() throws {
    final class Named: Interceptor {
      private var name = ""
      func callFunction(_ method: MethodInfo) -> CallFunction {
        self.name += "\(method.name)"
        return CallFunction(
          requestFunction: { request in
            guard request.headers.isEmpty else { throw ConnectError(code: .aborted) }
            request.headers["x-name"] = [self.name]
          },
          outcomeFunction: { outcome in outcome.trailers["x-name"] = [self.name] }
        )
      }
    }
    let driver = InterceptorDriver { _ in Named() }
    let call = driver.call(MethodInfo(path: "/s.S/Read", streamType: .unary))
    XCTAssertEqual(try call.request(driver.makeRequest(message: ())).headers["x-name"], ["Read"])
    XCTAssertThrowsError(try call.request(driver.makeRequest(headers: ["a": ["1"]], message: ()))) { error in
      XCTAssertEqual((error as? ConnectError)?.code, .aborted)
    }
    // However it is driven, it is told of its method once.
    let outcome = driver.call(MethodInfo(path: "/s.S/Other", streamType: .unary)).outcome(CallOutcome())
    XCTAssertEqual(outcome.trailers["x-name"], ["Read"])
  }

  /// Call hooks can do as much as in a call.
  func testWhatCallHooksCannotDo() throws {
    final class Replacing: Interceptor {
      func callFunction(_ method: MethodInfo) -> CallFunction {
        CallFunction(
          requestFunction: { request in
            request = HTTPRequest(url: request.url, contentType: request.contentType, message: ())
          },
          outcomeFunction: { outcome in
            outcome = CallOutcome(trailers: ["x": ["1"]])
          }
        )
      }
    }
    let driver = InterceptorDriver { _ in Replacing() }
    let method = MethodInfo(path: "/s.S/Read", streamType: .unary)
    let call = driver.call(method)
    let request = try call.request(driver.makeRequest(message: ()))
    XCTAssertEqual(request.method, method, "a new request is one of the same call")
    let failed = call.outcome(CallOutcome(error: self.unavailable))
    XCTAssertEqual(failed.error?.message, "try later", "a failure stays a failure")
    XCTAssertEqual(failed.trailers, ["x": ["1"]])
    XCTAssertEqual(call.outcome(CallOutcome()).code, .ok)
  }

  func testWhatARequestHookCanDo() async throws {
    let driver = self.hooks { interceptor in
      interceptor.unary.requestFunction = { request, proceed in
        switch String(buffer: request.message) {
        case "fail": proceed(.failure(ConnectError(code: .aborted)))
        case "answer": proceed.answer(HTTPResponse(message: ByteBuffer(string: "cached")))
        default:
          var request = request
          request.headers["x-seen"] = ["1"]
          proceed(.success(request))
        }
      }
    }
    func outcome(_ text: String) async throws -> RequestVerb<HTTPRequest<ByteBuffer>, HTTPResponse> {
      try await driver.unary.request(driver.makeRequest(message: ByteBuffer(string: text))).outcome
    }
    let passed = try await outcome("pass")
    XCTAssertEqual(passed.request?.headers, ["x-seen": ["1"]])
    XCTAssertNil(passed.error)
    XCTAssertNil(passed.answer)
    let failed = try await outcome("fail")
    XCTAssertEqual(failed.error?.code, .aborted)
    XCTAssertNil(failed.request)
    let answered = try await outcome("answer")
    XCTAssertEqual(answered.answer?.message, ByteBuffer(string: "cached"))
    XCTAssertNil(answered.error)
  }

  func testWhatAResponseHookCanDo() async throws {
    let other = InterceptorDriver { _ in HooksInterceptor() }.makeRequest(
      message: ByteBuffer(string: "other")
    )
    let driver = self.hooks { interceptor in
      interceptor.unary.responseFunction = { response, proceed in
        switch response.code {
        case .unavailable: proceed.retry(after: .seconds(2))
        case .aborted: proceed.retry(other)
        default: proceed(response)
        }
      }
    }
    let retry = try await driver.unary.response(HTTPResponse(error: self.unavailable)).outcome
    XCTAssertEqual(retry.retryDelay, .seconds(2))
    XCTAssertNil(retry.retryRequest)
    XCTAssertNil(retry.response)
    let changed = try await driver.unary.response(HTTPResponse(error: ConnectError(code: .aborted))).outcome
    XCTAssertEqual(changed.retryDelay, .zero)
    XCTAssertEqual(changed.retryRequest?.message, ByteBuffer(string: "other"))
    let passed = try await driver.unary.response(HTTPResponse(message: ByteBuffer(string: "fine"))).outcome
    XCTAssertEqual(passed.response?.message, ByteBuffer(string: "fine"))
    XCTAssertNil(passed.retryDelay)
  }

  func testStreamHooks() async throws {
    let driver = self.hooks { interceptor in
      interceptor.stream = StreamFunction(
        requestFunction: { head, proceed in
          if head.url.path == "/answer" {
            proceed.answer(StreamAnswer(messages: []))
          } else {
            proceed(.success(head))
          }
        },
        requestDataFunction: { message, proceed in
          if message.readableBytes == 0 { proceed.drop() } else { proceed(message) }
        },
        streamResultFunction: { result, proceed in
          switch result {
          case .message: proceed.drop()
          case .complete(_, .some, _): proceed.retry(after: .seconds(1))
          case .headers, .complete: proceed(result)
          }
        },
        responseMetricsFunction: { metrics, proceed in
          var metrics = metrics
          metrics.attempt += 1
          proceed(metrics)
        }
      )
    }
    let answered = try await driver.stream.request(driver.makeRequest(path: "/answer", message: ())).outcome
    XCTAssertEqual(answered.answer?.messages, [])
    let head = try await driver.stream.request(driver.makeRequest(message: ())).outcome
    XCTAssertNotNil(head.request)
    let dropped = try await driver.stream.requestMessage(ByteBuffer()).outcome
    XCTAssertTrue(dropped.isDrop)
    XCTAssertNil(dropped.message)
    let sent = try await driver.stream.requestMessage(ByteBuffer(string: "x")).outcome
    XCTAssertEqual(sent.message, ByteBuffer(string: "x"))
    XCTAssertFalse(sent.isDrop)
    driver.stream.finishRequest()
    let message = try await driver.stream.result(.message(ByteBuffer())).outcome
    XCTAssertTrue(message.isDrop)
    let failed = try await driver.stream.result(.failed(self.unavailable)).outcome
    XCTAssertEqual(failed.retryDelay, .seconds(1))
    XCTAssertNil(failed.retryRequest)
    XCTAssertNil(failed.result)
    let headers = try await driver.stream.result(.headers(["a": ["b"]])).outcome
    guard case .headers(["a": ["b"]]) = headers.result else { return XCTFail("\(headers)") }
    XCTAssertNil(headers.retryDelay)
    XCTAssertFalse(headers.isDrop)
    let metrics = try await driver.stream.metrics(HTTPMetrics(attempt: 1)).outcome
    XCTAssertEqual(metrics.attempt, 2)
  }

  func testHeadersHeldBackUntilTheFirstMessage() async throws {
    let driver = self.hooks { interceptor in
      let held = Mutex<(@Sendable () -> Void)?>(nil)
      interceptor.stream.streamResultFunction = { result, proceed in
        if case .headers = result { return held.withLock { $0 = { proceed(result) } } }
        held.withLock { $0 }?()
        proceed(result)
      }
    }
    let headers = driver.stream.result(.headers(["etag": ["1"]]))
    XCTAssertTrue(headers.verbs.isEmpty)
    let message = driver.stream.result(.message(ByteBuffer(string: "x")))
    XCTAssertEqual(message.verbs.count, 1)
    guard case .headers(["etag": ["1"]]) = try await headers.outcome.result else {
      return XCTFail("\(headers.verbs)")
    }
  }

  func testAbsentHooksPassValuesOn() async throws {
    let driver = self.hooks { _ in }
    let request = try await driver.unary.request(driver.makeRequest(message: ByteBuffer(string: "x"))).outcome
    XCTAssertEqual(request.request?.message, ByteBuffer(string: "x"))
    let response = try await driver.unary.response(HTTPResponse(error: self.unavailable)).outcome
    XCTAssertEqual(response.response?.code, .unavailable)
    let metrics = try await driver.unary.metrics(HTTPMetrics(attempt: 3)).outcome
    XCTAssertEqual(metrics.attempt, 3)
    let head = try await driver.stream.request(driver.makeRequest(path: "/p", message: ())).outcome
    XCTAssertEqual(head.request?.url.path, "/p")
    let message = try await driver.stream.requestMessage(ByteBuffer(string: "x")).outcome
    XCTAssertEqual(message.message, ByteBuffer(string: "x"))
    let result = try await driver.stream.result(.message(ByteBuffer(string: "x"))).outcome
    XCTAssertEqual(result.result?.message, ByteBuffer(string: "x"))
    let streamMetrics = try await driver.stream.metrics(HTTPMetrics(attempt: 3)).outcome
    XCTAssertEqual(streamMetrics.attempt, 3)
  }

  func testMessageHooks() async throws {
    let driver = self.hooks { interceptor in
      interceptor.messages.requestFunction = { request, proceed in
        var request = request
        request.message = Note(request.message.text + "!")
        proceed(.success(request))
      }
      interceptor.messages.responseFunction = { response, proceed in
        proceed(response.error == nil ? response : ResponseMessage(message: Note("rescued")))
      }
      interceptor.streamMessages.requestMessageFunction = { message, proceed in
        proceed(Note(message.text + "?"))
      }
    }
    let unary = driver.unaryMessages(Note.post)
    let request = try await unary.request(driver.makeRequest(message: Note("hi"))).outcome
    XCTAssertEqual(request.request?.message, Note("hi!"))
    let response = try await unary.response(ResponseMessage(error: self.unavailable)).outcome
    XCTAssertEqual(response.response?.message, Note("rescued"))
    let message = try await driver.streamMessages(Note.chat).requestMessage(Note("hi")).outcome
    XCTAssertEqual(message.message, Note("hi?"))
  }

  // MARK: Instances, configuration, executor

  func testTheFactoryRunsOnceWithTheConfigurationOnTheExecutor() async throws {
    let made = Mutex<[String]>([])
    let executor = VirtualExecutor()
    let driver = InterceptorDriver(
      config: ProtocolClientConfig(host: "https://configured.test"),
      executor: executor
    ) { config in
      made.withLock { $0.append("\(config.host) \(executor.isCurrent)") }
      var interceptor = HooksInterceptor()
      var count = 0
      interceptor.unary.requestFunction = { request, proceed in
        XCTAssertTrue(executor.isCurrent)
        count += 1
        var request = request
        request.headers["count"] = ["\(count)"]
        proceed(.success(request))
      }
      return interceptor
    }
    for count in 1...2 {
      let outcome = try await driver.unary.request(driver.makeRequest(message: ByteBuffer())).outcome
      XCTAssertEqual(outcome.request?.headers["count"], ["\(count)"])
    }
    XCTAssertEqual(made.withLock { $0 }, ["https://configured.test true"])
    XCTAssertEqual(driver.config.host, "https://configured.test")
  }

  // MARK: Time

  func testAHookThatProceedsLater() async throws {
    let executor = VirtualExecutor()
    let driver = InterceptorDriver(executor: executor) { _ in
      var interceptor = HooksInterceptor()
      interceptor.unary.requestFunction = { request, proceed in
        _ = executor.schedule(after: .seconds(30)) { proceed(.success(request)) }
      }
      return interceptor
    }
    let visit = driver.unary.request(driver.makeRequest(message: ByteBuffer()))
    XCTAssertTrue(visit.verbs.isEmpty)
    XCTAssertEqual(executor.now, .zero)
    let outcome = try await visit.outcome
    XCTAssertNotNil(outcome.request)
    XCTAssertEqual(executor.now, .seconds(30))
  }

  func testAHookThatProceedsFromElsewhere() async throws {
    let driver = InterceptorDriver { _ in
      var interceptor = HooksInterceptor()
      interceptor.unary.requestFunction = { request, proceed in
        Task.detached {
          try? await Task.sleep(for: .milliseconds(5))
          proceed(.success(request))
        }
      }
      return interceptor
    }
    let outcome = try await driver.unary.request(driver.makeRequest(message: ByteBuffer())).outcome
    XCTAssertNotNil(outcome.request)
  }

  // MARK: Mistakes

  private func misuse<Verb>(_ visit: HookVisit<Verb>) async -> HookMisuse? {
    do {
      _ = try await visit.outcome
      return nil
    } catch {
      return error as? HookMisuse
    }
  }

  func testProceedCalledTwice() async {
    let driver = self.hooks { interceptor in
      interceptor.unary.requestFunction = { request, proceed in
        proceed(.success(request))
        proceed(.failure(ConnectError(code: .aborted, message: "no")))
      }
    }
    let visit = driver.unary.request(driver.makeRequest(message: ByteBuffer(string: "hello")))
    let misuse = await self.misuse(visit)
    XCTAssertEqual(misuse?.kind, .proceededTwice)
    XCTAssertEqual(
      misuse.map { "\($0)" },
      """
      HooksInterceptor, unary byte request: called proceed more than once
        with request: hello
        with failure aborted: no
      """
    )
    XCTAssertEqual(visit.verbs.count, 2)
  }

  func testProceedCalledASecondTimeAtTheSameVirtualTime() async {
    let executor = VirtualExecutor()
    let driver = InterceptorDriver(executor: executor) { _ in
      var interceptor = HooksInterceptor()
      interceptor.stream.streamResultFunction = { result, proceed in
        proceed(result)
        executor.execute { proceed.drop() }
      }
      return interceptor
    }
    let misuse = await self.misuse(driver.stream.result(.headers([:])))
    XCTAssertEqual(misuse?.kind, .proceededTwice)
    XCTAssertEqual(misuse?.verbs, ["headers", "drop"])
  }

  func testProceedLetGo() async {
    let driver = self.hooks { $0.unary.responseFunction = { _, _ in } }
    let start = ContinuousClock.now
    let misuse = await self.misuse(driver.unary.response(HTTPResponse()))
    XCTAssertEqual(misuse?.kind, .letGoOfProceed)
    XCTAssertEqual(
      misuse?.description,
      "HooksInterceptor, unary byte response: let go of proceed without calling it"
    )
    XCTAssertLessThan(ContinuousClock.now - start, .seconds(2))
  }

  func testProceedKeptAndNeverCalled() async {
    let kept = Mutex<[any Sendable]>([])
    let driver = self.hooks { interceptor in
      interceptor.unary.responseFunction = { _, proceed in kept.withLock { $0.append(proceed) } }
    }
    let misuse = await self.misuse(driver.unary.response(HTTPResponse()))
    XCTAssertEqual(misuse?.kind, .neverProceeded)
    XCTAssertEqual(misuse?.hook, "HooksInterceptor, unary byte response")
  }

  func testTheTimeoutIsInVirtualTime() async {
    let executor = VirtualExecutor()
    let driver = InterceptorDriver(executor: executor, timeout: .seconds(10), patience: .seconds(600)) { _ in
      var interceptor = HooksInterceptor()
      interceptor.unary.requestFunction = { request, proceed in
        _ = executor.schedule(after: .seconds(11)) { proceed(.success(request)) }
      }
      return interceptor
    }
    let misuse = await self.misuse(driver.unary.request(driver.makeRequest(message: ByteBuffer())))
    XCTAssertEqual(misuse?.kind, .neverProceeded)
  }
}

/// An interceptor that is made of closures.
struct HooksInterceptor: Interceptor {
  var unary = UnaryFunction()
  var stream = StreamFunction()
  var messages = UnaryMessageFunction<Note, Note>()
  var streamMessages = StreamMessageFunction<Note, Note>()

  func unaryFunction() -> UnaryFunction { self.unary }
  func streamFunction() -> StreamFunction { self.stream }

  func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    (self.messages as Any) as? UnaryMessageFunction<Input, Output> ?? UnaryMessageFunction()
  }

  func streamMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamMessageFunction<Input, Output> {
    (self.streamMessages as Any) as? StreamMessageFunction<Input, Output> ?? StreamMessageFunction()
  }
}
