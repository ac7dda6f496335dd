import Connect
import ConnectTesting
import NIOCore
import Synchronization
import XCTest

/// A driver accepts what a call accepts, and refuses what a call refuses.
final class DriverCallTests: XCTestCase {
  private let unavailable = ConnectError(code: .unavailable, message: "try later")

  private func driver(
    _ executor: VirtualExecutor = VirtualExecutor(),
    config: ProtocolClientConfig = ProtocolClientConfig(host: "https://interceptor.test"),
    _ configure: @escaping @Sendable (inout HooksInterceptor) -> Void
  ) -> InterceptorDriver {
    InterceptorDriver(config: config, executor: executor, patience: .milliseconds(10)) { _ in
      var interceptor = HooksInterceptor()
      configure(&interceptor)
      return interceptor
    }
  }

  private func misuse<Verb>(_ visit: HookVisit<Verb>) async -> HookMisuse.Kind? {
    do {
      _ = try await visit.outcome
      return nil
    } catch {
      return (error as? HookMisuse)?.kind
    }
  }

  /// It is asked once, after it was told of its method, and hears of what the test tells alone.
  func testWhatObservesAttempts() async throws {
    final class Observing: Interceptor {
      let seen: Observed<[String]>
      init(_ seen: Observed<[String]>) { self.seen = seen }

      func callFunction(_ method: MethodInfo) -> CallFunction {
        self.seen.update { $0.append("asked for \(method.name)") }
        return CallFunction()
      }

      func attemptFunction() -> AttemptFunction? {
        self.seen.update { $0.append("asked") }
        return { event in
          self.seen.update { seen in
            switch event {
            case .started(let start): seen.append("\(start.number) \(start.kind)")
            case .ended(let record): seen.append("\(record.number) \(record.code)")
            }
          }
        }
      }
    }
    let seen = Observed<[String]>([])
    let driver = InterceptorDriver { _ in Observing(seen) }
    let call = driver.call(MethodInfo(path: "/s.S/Read", streamType: .unary))
    call.attempt(.started(AttemptStart(number: 2, kind: .retry)))
    _ = try await driver.unary.request(driver.makeRequest(message: ByteBuffer())).outcome
    _ = try await driver.unary.response(HTTPResponse()).outcome
    call.attempt(.ended(AttemptRecord(number: 2, kind: .retry, code: .unavailable)))
    XCTAssertEqual(seen.value, ["asked for Read", "asked", "2 retry", "2 unavailable"])
  }

  // MARK: Values that do not get to a hook

  func testNothingComesBackToARequestThatWasAnswered() async throws {
    let driver = self.driver { interceptor in
      interceptor.unary.requestFunction = { _, proceed in proceed.answer(HTTPResponse()) }
      interceptor.unary.responseFunction = { response, proceed in proceed(response) }
    }
    _ = try await driver.unary.request(driver.makeRequest(message: ByteBuffer())).outcome
    let kind = await self.misuse(driver.unary.response(HTTPResponse()))
    XCTAssertEqual(kind, .notWaiting)
  }

  func testNothingComesBehindTheEnd() async throws {
    let driver = self.driver { _ in }
    _ = try await driver.stream.request(driver.makeRequest(message: ())).outcome
    _ = try await driver.stream.result(.failed(self.unavailable)).outcome
    let result = await self.misuse(driver.stream.result(.message(ByteBuffer())))
    XCTAssertEqual(result, .notWaiting)
    let message = await self.misuse(driver.stream.requestMessage(ByteBuffer()))
    XCTAssertEqual(message, .notWaiting)
  }

  func testAResponseWaitsForTheRequest() async throws {
    let executor = VirtualExecutor()
    let driver = self.driver(executor) { interceptor in
      interceptor.unary.requestFunction = { request, proceed in
        _ = executor.schedule(after: .seconds(30)) { proceed(.success(request)) }
      }
    }
    _ = driver.unary.request(driver.makeRequest(message: ByteBuffer()))
    let response = driver.unary.response(HTTPResponse())
    XCTAssertTrue(response.verbs.isEmpty)
    _ = try await response.outcome
    XCTAssertEqual(executor.now, .seconds(30))
  }

  func testWithoutARequestEachResponseIsThatOfACall() async throws {
    let requests = Mutex(0)
    let driver = self.driver { interceptor in
      interceptor.unary.requestFunction = { request, proceed in
        requests.withLock { $0 += 1 }
        proceed(.success(request))
      }
    }
    for code in [Code.aborted, .unavailable] {
      let verb = try await driver.unary.response(HTTPResponse(error: ConnectError(code: code))).outcome
      XCTAssertEqual(verb.response?.code, code)
    }
    XCTAssertEqual(requests.withLock { $0 }, 0)
  }

  func testANewRequestEndsTheCall() async throws {
    let executor = VirtualExecutor()
    let driver = self.driver(executor) { interceptor in
      interceptor.unary.requestFunction = { request, proceed in
        _ = executor.schedule(after: .seconds(1)) { proceed(.success(request)) }
      }
    }
    let first = driver.unary.request(driver.makeRequest(message: ByteBuffer()))
    let second = driver.unary.request(driver.makeRequest(message: ByteBuffer()))
    _ = try await second.outcome
    let kind = await self.misuse(first)
    XCTAssertEqual(kind, .neverProceeded)
  }

  // MARK: Retries

  func testARetryPassesTheRequestHookAgain() async throws {
    let executor = VirtualExecutor()
    let requests = Mutex<[String]>([])
    let driver = self.driver(executor) { interceptor in
      interceptor.unary.requestFunction = { request, proceed in
        requests.withLock { $0.append("\(executor.now) \(String(buffer: request.message))") }
        proceed(.success(request))
      }
      interceptor.unary.responseFunction = { response, proceed in
        if response.error == nil { proceed(response) } else { proceed.retry(after: .seconds(2)) }
      }
    }
    let request = driver.makeRequest(message: ByteBuffer(string: "hi"))
    let sent = driver.unary.request(request)
    let retry = try await driver.unary.response(HTTPResponse(error: self.unavailable)).outcome
    XCTAssertEqual(retry.retryDelay, .seconds(2))
    XCTAssertEqual(executor.now, .zero)
    let response = try await driver.unary.response(HTTPResponse()).outcome
    XCTAssertEqual(response.response?.code, .ok)
    XCTAssertEqual(requests.withLock { $0 }, ["0.0 seconds hi", "2.0 seconds hi"])
    XCTAssertEqual(sent.verbs.count, 1)
  }

  func testARetryBringsRequestMessagesAgain() async throws {
    let messages = Mutex<[String]>([])
    let driver = self.driver { interceptor in
      interceptor.stream = StreamFunction(
        requestDataFunction: { message, proceed in
          messages.withLock { $0.append(String(buffer: message)) }
          proceed(message)
        },
        streamResultFunction: { result, proceed in
          if case .complete(_, .some, _) = result {
            proceed.retry(after: .seconds(1))
          } else {
            proceed(result)
          }
        }
      )
    }
    _ = try await driver.stream.request(driver.makeRequest(message: ())).outcome
    let sent = driver.stream.requestMessage(ByteBuffer(string: "a"))
    _ = try await driver.stream.requestMessage(ByteBuffer(string: "b")).outcome
    let retry = try await driver.stream.result(.failed(self.unavailable)).outcome
    XCTAssertEqual(retry.retryDelay, .seconds(1))
    _ = try await driver.stream.result(.message(ByteBuffer())).outcome
    XCTAssertEqual(messages.withLock { $0 }, ["a", "b", "a", "b"])
    XCTAssertEqual(sent.verbs.count, 1)
  }

  func testRetriesAreCapped() async throws {
    let config = ProtocolClientConfig(host: "https://interceptor.test", retries: .init(maximumRetries: 1))
    let driver = self.driver(config: config) { interceptor in
      interceptor.unary.responseFunction = { _, proceed in proceed.retry() }
    }
    let first = try await driver.unary.response(HTTPResponse(error: self.unavailable)).outcome
    XCTAssertEqual(first.retryDelay, .zero)
    let second = try await driver.unary.response(HTTPResponse(error: self.unavailable)).outcome
    XCTAssertEqual(second.response?.code, .unavailable)
  }

  func testARetryBeyondTheTimeoutIsRefused() async throws {
    let config = ProtocolClientConfig(host: "https://interceptor.test", timeout: .seconds(3))
    let driver = self.driver(config: config) { interceptor in
      interceptor.unary.responseFunction = { _, proceed in proceed.retry(after: .seconds(2)) }
    }
    let first = try await driver.unary.response(HTTPResponse(error: self.unavailable)).outcome
    XCTAssertEqual(first.retryDelay, .seconds(2))
    driver.executor.advance(by: .seconds(2))
    let second = try await driver.unary.response(HTTPResponse(error: self.unavailable)).outcome
    XCTAssertEqual(second.response?.code, .unavailable, "one second is left")
  }

  func testNextIsCapped() async throws {
    let config = ProtocolClientConfig(host: "https://interceptor.test", retries: .init(maximumRetries: 1))
    let driver = InterceptorDriver(config: config) { _ in
      NoteInterceptor(unary: { request, next in
        var response = try await next(request)
        for _ in 0..<5 where response.error != nil { response = try await next(request) }
        return response
      })
    }
    let hooks = driver.unaryMessages(Note.post)
    _ = try await hooks.request(driver.makeRequest(message: Note("hi"))).outcome
    let first = try await hooks.response(ResponseMessage(error: self.unavailable)).outcome
    XCTAssertEqual(first.retryRequest?.message, Note("hi"))
    let second = try await hooks.response(ResponseMessage(error: self.unavailable)).outcome
    XCTAssertEqual(second.response?.code, .unavailable)
  }

  func testARetryOnceAResultHasGoneOutIsRefused() async throws {
    let driver = self.driver { interceptor in
      interceptor.stream.streamResultFunction = { result, proceed in
        if case .complete = result { proceed.retry() } else { proceed(result) }
      }
    }
    _ = try await driver.stream.result(.headers([:])).outcome
    let end = try await driver.stream.result(.failed(self.unavailable)).outcome
    XCTAssertNil(end.retryDelay)
    guard case .complete(.unavailable, _, _) = end.result else { return XCTFail("\(end)") }
  }

  func testWhatIsProceededWithBehindARetryIsIgnored() async throws {
    let driver = self.driver { interceptor in
      let held = Mutex<(@Sendable () -> Void)?>(nil)
      interceptor.stream.streamResultFunction = { result, proceed in
        switch result {
        case .headers: held.withLock { $0 = { proceed(result) } }
        case .message: held.withLock { $0 }?()
        case .complete: proceed.retry()
        }
        if case .message = result { proceed(result) }
      }
    }
    let headers = driver.stream.result(.headers([:]))
    let end = try await driver.stream.result(.failed(self.unavailable)).outcome
    XCTAssertEqual(end.retryDelay, .zero)
    _ = try await driver.stream.result(.message(ByteBuffer())).outcome
    let kind = await self.misuse(headers)
    XCTAssertEqual(kind, .neverProceeded)
  }

  func testHeadersAndTheEndCannotBeDropped() async throws {
    let driver = self.driver { interceptor in
      interceptor.stream.streamResultFunction = { _, proceed in proceed.drop() }
    }
    let headers = try await driver.stream.result(.headers(["a": ["b"]])).outcome
    guard case .headers(["a": ["b"]]) = headers.result else { return XCTFail("\(headers)") }
    let message = try await driver.stream.result(.message(ByteBuffer())).outcome
    XCTAssertTrue(message.isDrop)
    let end = try await driver.stream.result(.complete(code: .ok, error: nil, trailers: [:])).outcome
    guard case .complete = end.result else { return XCTFail("\(end)") }
  }

  // MARK: Metrics

  func testMetricsAreGivenToTheHookLikeInACall() async throws {
    let executor = VirtualExecutor()
    let driver = self.driver(executor) { interceptor in
      interceptor.unary.responseMetricsFunction = { metrics, proceed in
        switch metrics.attempt {
        case 1: _ = executor.schedule(after: .seconds(1)) { proceed(metrics) }
        case 2:
          proceed(metrics)
          proceed(metrics)
        default: break
        }
      }
    }
    let late = try await driver.unary.metrics(HTTPMetrics(attempt: 1)).outcome
    XCTAssertEqual(late.attempt, 1)
    XCTAssertEqual(executor.now, .seconds(1))
    let twice = await self.misuse(driver.unary.metrics(HTTPMetrics(attempt: 2)))
    XCTAssertEqual(twice, .proceededTwice)
    let never = await self.misuse(driver.unary.metrics(HTTPMetrics(attempt: 3)))
    XCTAssertEqual(never, .letGoOfProceed)
  }

  func testMetricsThatAreLetGoDoNotEndTheCall() async throws {
    let driver = self.driver { $0.unary.responseMetricsFunction = { _, _ in } }
    _ = try await driver.unary.request(driver.makeRequest(message: ByteBuffer())).outcome
    let kind = await self.misuse(driver.unary.metrics(HTTPMetrics(attempt: 1)))
    XCTAssertEqual(kind, .letGoOfProceed)
    let response = try await driver.unary.response(HTTPResponse()).outcome
    XCTAssertEqual(response.response?.code, .ok)
  }

  // MARK: The async form

  func testWithTasksInThePool() async throws {
    let executor = VirtualExecutor(runsTasks: false)
    let driver = InterceptorDriver(executor: executor) { _ in
      NoteInterceptor(stream: { request, next in
        try await next(request.map { Note($0.text + "!") }).map { Note($0.text + "?") }
      })
    }
    let hooks = driver.streamMessages(Note.chat)
    _ = try await hooks.request(driver.makeRequest(message: ())).outcome
    for text in ["a", "b", "c"] {
      let message = try await hooks.requestMessage(Note(text)).outcome
      XCTAssertEqual(message.message, Note(text + "!"))
      let result = try await hooks.result(.message(Note(text))).outcome
      XCTAssertEqual(result.result?.message, Note(text + "?"))
    }
  }

  func testANextThatIsGivenUpReadsNoResponse() async throws {
    let executor = VirtualExecutor()
    let driver = InterceptorDriver(executor: executor, patience: .milliseconds(10)) { _ in
      NoteInterceptor(unary: { request, next in
        await withTaskGroup(of: Void.self) { group in
          group.addTask { _ = try? await next(request) }
          group.addTask { try? await executor.clock.sleep(for: .seconds(1)) }
          await group.next()
          group.cancelAll()
        }
        try await executor.clock.sleep(for: .seconds(86_400))
        return try await next(request)
      })
    }
    let hooks = driver.unaryMessages(Note.post)
    _ = try await hooks.request(driver.makeRequest(message: Note("hi"))).outcome
    executor.advance(by: .seconds(2))
    let kind = await self.misuse(hooks.response(ResponseMessage(message: Note("late"))))
    XCTAssertEqual(kind, .notWaiting)
  }

  func testAMessageThatIsNotRead() async throws {
    let driver = InterceptorDriver(patience: .milliseconds(10)) { _ in
      NoteInterceptor(stream: { _, _ in throw ConnectError(code: .aborted) })
    }
    let hooks = driver.streamMessages(Note.chat)
    _ = try await hooks.request(driver.makeRequest(message: ())).outcome
    let kind = await self.misuse(hooks.requestMessage(Note("a")))
    XCTAssertEqual(kind, .notWaiting)
  }

  func testTheAsyncFormIsReleasedWithTheDriver() async throws {
    final class Token: Sendable {}
    weak var weak: Token?
    do {
      let token = Token()
      weak = token
      let driver = InterceptorDriver { _ in
        NoteInterceptor(unary: { request, next in
          defer { withExtendedLifetime(token) {} }
          return try await next(request)
        })
      }
      let hooks = driver.unaryMessages(Note.post)
      _ = try await hooks.request(driver.makeRequest(message: Note("hi"))).outcome
    }
    for _ in 0..<1000 where weak != nil { try await Task.sleep(for: .milliseconds(1)) }
    XCTAssertNil(weak)
  }

  func testAHookThatKeepsItsProceedIsReleasedWithTheDriver() async throws {
    final class Keeping: Interceptor {
      var kept: [Any] = []
      func unaryFunction() -> UnaryFunction {
        UnaryFunction(requestFunction: { _, proceed in self.kept.append(proceed) })
      }
    }
    let executor = VirtualExecutor()
    let made = Mutex<@Sendable () -> Bool>({ false })
    do {
      let driver = InterceptorDriver(executor: executor) { _ in
        let interceptor = Keeping()
        let reference = WeakReference(interceptor)
        made.withLock { $0 = { reference.object != nil } }
        return interceptor
      }
      _ = driver.unary.request(driver.makeRequest(message: ByteBuffer()))
      XCTAssertTrue(made.withLock { $0 }())
    }
    executor.runUntilIdle()
    for _ in 0..<1000 where made.withLock({ $0 })() { try await Task.sleep(for: .milliseconds(1)) }
    XCTAssertFalse(made.withLock { $0 }())
  }
}

private struct WeakReference<Object: AnyObject>: @unchecked Sendable {
  weak var object: Object?
  init(_ object: Object) { self.object = object }
}
