import Connect
import ConnectTesting
import NIOCore
import Synchronization
import XCTest

/// Interceptors in their async form, driven like those made of closures.
final class AsyncInterceptorDriverTests: XCTestCase {
  private let unavailable = ConnectError(code: .unavailable, message: "try later")

  private func unary(
    _ executor: VirtualExecutor = VirtualExecutor(),
    patience: Duration = .seconds(2),
    _ body: @escaping NoteInterceptor.Unary
  ) -> InterceptorDriver {
    InterceptorDriver(executor: executor, patience: patience) { _ in NoteInterceptor(unary: body) }
  }

  private func stream(
    _ executor: VirtualExecutor = VirtualExecutor(),
    _ body: @escaping NoteInterceptor.Stream
  ) -> StreamHookDriver<Note, Note> {
    InterceptorDriver(executor: executor) { _ in NoteInterceptor(stream: body) }.streamMessages(Note.chat)
  }

  private var head: HTTPRequest<Void> {
    self.unary { try await $1($0) }.makeRequest(headers: ["x": ["1"]], message: ())
  }

  private func misuse<Verb>(_ visit: HookVisit<Verb>) async -> HookMisuse.Kind? {
    do {
      _ = try await visit.outcome
      return nil
    } catch {
      return (error as? HookMisuse)?.kind
    }
  }

  // MARK: Unary

  func testPassesRequestAndResponse() async throws {
    let driver = self.unary { request, next in
      var request = request
      request.message = Note(request.message.text + "!")
      let response = try await next(request)
      return ResponseMessage(message: Note((response.message?.text ?? "") + "?"))
    }
    let hooks = driver.unaryMessages(Note.post)
    let request = try await hooks.request(driver.makeRequest(message: Note("hi"))).outcome
    XCTAssertEqual(request.request?.message, Note("hi!"))
    let response = try await hooks.response(ResponseMessage(message: Note("ho"))).outcome
    XCTAssertEqual(response.response?.message, Note("ho?"))
    let metrics = try await hooks.metrics(HTTPMetrics(attempt: 1)).outcome
    XCTAssertEqual(metrics.attempt, 1)
  }

  func testAnswersAndFails() async throws {
    let answering = self.unary { _, _ in ResponseMessage(message: Note("cached")) }
    let answer = try await answering.unaryMessages(Note.post)
      .request(answering.makeRequest(message: Note("hi"))).outcome
    XCTAssertEqual(answer.answer?.message, Note("cached"))
    struct Failure: Error {}
    let failing = self.unary { _, _ in throw Failure() }
    let failure = try await failing.unaryMessages(Note.post)
      .request(failing.makeRequest(message: Note("hi"))).outcome
    XCTAssertEqual(failure.error?.code, .unknown)
    XCTAssertTrue(failure.error?.exception is Failure)
  }

  func testRetriesWithBackoffOnTheClock() async throws {
    let executor = VirtualExecutor()
    let driver = self.unary(executor) { request, next in
      var response = try await next(request)
      for seconds in [1, 2] where response.code == .unavailable {
        try await executor.clock.sleep(for: .seconds(seconds))
        response = try await next(request)
      }
      if response.code == .unavailable { throw ConnectError(code: .aborted) }
      return response
    }
    let hooks = driver.unaryMessages(Note.post)
    _ = try await hooks.request(driver.makeRequest(message: Note("hi"))).outcome
    let first = try await hooks.response(ResponseMessage(error: self.unavailable)).outcome
    XCTAssertEqual(first.retryDelay, .seconds(1))
    XCTAssertEqual(first.retryRequest?.message, Note("hi"))
    let second = try await hooks.response(ResponseMessage(error: self.unavailable)).outcome
    XCTAssertEqual(second.retryDelay, .seconds(2))
    let third = try await hooks.response(ResponseMessage(error: self.unavailable)).outcome
    XCTAssertEqual(third.response?.error?.code, .aborted)
    XCTAssertEqual(executor.now, .seconds(3))
  }

  func testGivesUpWaitingForNext() async throws {
    let executor = VirtualExecutor()
    let driver = self.unary(executor) { request, next in
      try await withThrowingTaskGroup(of: ResponseMessage<Note>.self) { group in
        group.addTask { try await next(request) }
        group.addTask {
          try await executor.clock.sleep(for: .seconds(5))
          return ResponseMessage(error: ConnectError(code: .deadlineExceeded))
        }
        defer { group.cancelAll() }
        return try await group.next() ?? ResponseMessage(error: ConnectError(code: .internalError))
      }
    }
    let hooks = driver.unaryMessages(Note.post)
    let request = try await hooks.request(driver.makeRequest(message: Note("hi"))).outcome
    XCTAssertNotNil(request.request)
    executor.advance(by: .seconds(5))
    let late = try await hooks.response(ResponseMessage(message: Note("late"))).outcome
    XCTAssertEqual(late.response?.code, .deadlineExceeded)
  }

  func testNextWhileAnEarlierOneIsPending() async throws {
    let driver = self.unary { request, next in
      async let other = next(request)
      let response = try await next(request)
      do {
        _ = try await other
        return response
      } catch {
        return ResponseMessage(error: ConnectError(error))
      }
    }
    let hooks = driver.unaryMessages(Note.post)
    _ = try await hooks.request(driver.makeRequest(message: Note("hi"))).outcome
    let response = try await hooks.response(ResponseMessage(message: Note("first"))).outcome
    XCTAssertEqual(response.response?.error?.code, .internalError)
  }

  func testAResponseThatNobodyWaitsFor() async {
    let driver = self.unary { try await $1($0) }
    let kind = await self.misuse(
      driver.unaryMessages(Note.post).response(ResponseMessage(message: Note("hi")))
    )
    XCTAssertEqual(kind, .notWaiting)
  }

  func testNeverGoesOn() async {
    let executor = VirtualExecutor()
    let driver = self.unary(executor, patience: .milliseconds(10)) { request, next in
      try await executor.clock.sleep(for: .seconds(86_400))
      return try await next(request)
    }
    let kind = await self.misuse(
      driver.unaryMessages(Note.post).request(driver.makeRequest(message: Note("hi")))
    )
    XCTAssertEqual(kind, .neverProceeded)
  }

  func testARequestAgainIsACallOfItsOwn() async throws {
    let driver = self.unary { try await $1($0) }
    let hooks = driver.unaryMessages(Note.post)
    for text in ["one", "two"] {
      let outcome = try await hooks.request(driver.makeRequest(message: Note(text))).outcome
      XCTAssertEqual(outcome.request?.message, Note(text))
    }
    let response = try await hooks.response(ResponseMessage(message: Note("x"))).outcome
    XCTAssertEqual(response.response?.message, Note("x"))
  }

  func testAVisitKeepsWhatItNeedsAndNothingIsLeftBehind() async throws {
    let executor = VirtualExecutor()
    let ended = Mutex<[Bool]>([])
    func driver() -> InterceptorDriver {
      self.unary(executor) { request, next in
        try await executor.clock.sleep(for: .seconds(1))
        defer { ended.withLock { $0.append(Task.isCancelled) } }
        return try await next(request)
      }
    }
    let request = driver().makeRequest(message: Note("hi"))
    // Nobody but the visit holds the hooks.
    let outcome = try await driver().unaryMessages(Note.post).request(request).outcome
    XCTAssertEqual(outcome.request?.message, Note("hi"))
    try await executor.wait { !ended.withLock { $0 }.isEmpty }
    XCTAssertEqual(ended.withLock { $0 }, [true])
    _ = driver().unaryMessages(Note.post).request(request)
    try await executor.wait { executor.scheduled.isEmpty }
  }

  // MARK: Streams

  func testPassesAStream() async throws {
    let hooks = self.stream { request, next in
      var request = request
      request.head.headers["y"] = ["2"]
      let response = try await next(request.map { Note($0.text + "!") })
      return response.map { Note($0.text + "?") }.mapErrors { _ in ConnectError(code: .dataLoss) }
    }
    let head = try await hooks.request(self.head).outcome
    XCTAssertEqual(head.request?.headers, ["x": ["1"], "y": ["2"]])
    for text in ["a", "b"] {
      let message = try await hooks.requestMessage(Note(text)).outcome
      XCTAssertEqual(message.message, Note(text + "!"))
    }
    hooks.finishRequest()
    let headers = try await hooks.result(.headers(["h": ["1"]])).outcome
    guard case .headers(["h": ["1"]]) = headers.result else { return XCTFail("\(headers)") }
    let result = try await hooks.result(.message(Note("c"))).outcome
    XCTAssertEqual(result.result?.message, Note("c?"))
    let end = try await hooks.result(.failed(self.unavailable)).outcome
    guard case .complete(.dataLoss, .some, _) = end.result else { return XCTFail("\(end)") }
    let metrics = try await hooks.metrics(HTTPMetrics(attempt: 1)).outcome
    XCTAssertEqual(metrics.attempt, 1)
  }

  func testAnswersAndFailsAStream() async throws {
    let answering = self.stream { _, _ in
      StreamResponse(StreamAnswer(headers: ["h": ["1"]], messages: [Note("a"), Note("b")]))
    }
    let answer = try await answering.request(self.head).outcome
    XCTAssertEqual(answer.answer?.messages, [Note("a"), Note("b")])
    XCTAssertEqual(answer.answer?.headers, ["h": ["1"]])
    XCTAssertNil(answer.answer?.error)
    let failing = self.stream { _, _ in throw ConnectError(code: .aborted) }
    let failure = try await failing.request(self.head).outcome
    XCTAssertEqual(failure.error?.code, .aborted)
    let kind = await self.misuse(failing.result(.headers([:])))
    XCTAssertEqual(kind, .notWaiting)
  }

  func testDropsMessagesAndResults() async throws {
    let hooks = self.stream { request, next in
      let messages = PulledSequence(request.messages.filter { $0.text != "no" })
      let response = try await next(StreamRequest(head: request.head, messages: messages))
      return StreamResponse(results: PulledSequence(response.results.filter { $0.message?.text != "no" }))
    }
    _ = try await hooks.request(self.head).outcome
    let dropped = try await hooks.requestMessage(Note("no")).outcome
    XCTAssertTrue(dropped.isDrop)
    let passed = try await hooks.requestMessage(Note("yes")).outcome
    XCTAssertEqual(passed.message, Note("yes"))
    let droppedResult = try await hooks.result(.message(Note("no"))).outcome
    XCTAssertTrue(droppedResult.isDrop)
    let passedResult = try await hooks.result(.message(Note("yes"))).outcome
    XCTAssertEqual(passedResult.result?.message, Note("yes"))
  }

  func testOneValueMayBecomeTwo() async throws {
    let hooks = self.stream { request, next in
      let response = try await next(request)
      return StreamResponse(
        results: PulledSequence(
          response.results.flatMap { result in
            if case .message = result { PulledSequence([result, result]) } else { PulledSequence([result]) }
          }
        )
      )
    }
    _ = try await hooks.request(self.head).outcome
    let visit = hooks.result(.message(Note("a")))
    let outcome = try await visit.outcome
    XCTAssertEqual(outcome.result?.message, Note("a"))
    XCTAssertEqual(visit.verbs.count, 2)
  }

  func testRetriesAStreamAndReadsItsMessagesAgain() async throws {
    let executor = VirtualExecutor()
    let hooks = self.stream(executor) { request, next in
      while true {
        let response = try await next(request)
        var iterator = response.results.makeAsyncIterator()
        let first = try await iterator.next()
        if case .complete(.unavailable, _, _)? = first {
          try await executor.clock.sleep(for: .seconds(4))
          continue
        }
        return StreamResponse(results: PulledSequence(first.map { [$0] } ?? []))
      }
    }
    _ = try await hooks.request(self.head).outcome
    let message = hooks.requestMessage(Note("a"))
    _ = try await message.outcome
    let retry = try await hooks.result(.failed(self.unavailable)).outcome
    XCTAssertEqual(retry.retryDelay, .seconds(4))
    XCTAssertEqual(retry.retryRequest?.headers, ["x": ["1"]])
    let end = try await hooks.result(.complete(code: .ok, error: nil, trailers: ["t": ["1"]])).outcome
    guard case .complete(.ok, nil, ["t": ["1"]]) = end.result else { return XCTFail("\(end)") }
    // The second attempt has got it, too.
    XCTAssertEqual(message.verbs.map { $0.message?.text }, ["a", "a"])
  }

  func testGivesUpAStreamAndReadsNoMore() async throws {
    let executor = VirtualExecutor()
    let hooks = self.stream(executor) { request, next in
      _ = try await next(request)
      try await executor.clock.sleep(for: .seconds(5))
      throw ConnectError(code: .deadlineExceeded)
    }
    _ = try await hooks.request(self.head).outcome
    let headers = hooks.result(.headers([:]))
    let message = hooks.result(.message(Note("a")))
    let end = try await headers.outcome
    guard case .complete(.deadlineExceeded, _, _) = end.result else { return XCTFail("\(end)") }
    XCTAssertEqual(executor.now, .seconds(5))
    let unread = await self.misuse(message)
    XCTAssertEqual(unread, .notWaiting)
    let late = await self.misuse(hooks.result(.message(Note("b"))))
    XCTAssertEqual(late, .notWaiting)
  }

  func testEndsAStreamBeforeAnyResult() async throws {
    let hooks = self.stream { request, next in
      _ = try await next(request)
      return StreamResponse(StreamAnswer(messages: [Note("own")]))
    }
    _ = try await hooks.request(self.head).outcome
    let visit = hooks.result(.headers([:]))
    let outcome = try await visit.outcome
    guard case .headers = outcome.result else { return XCTFail("\(outcome)") }
    XCTAssertEqual(visit.verbs.map { $0.result?.message?.text }, [nil, "own", nil])
  }

  func testATransformThatThrowsEndsTheStream() async throws {
    struct Failure: Error {}
    let hooks = self.stream { request, next in
      try await next(request).map { _ in throw Failure() }
    }
    _ = try await hooks.request(self.head).outcome
    let outcome = try await hooks.result(.message(Note("a"))).outcome
    guard case .complete(.unknown, .some(let error), _) = outcome.result else { return XCTFail("\(outcome)") }
    XCTAssertTrue(error.exception is Failure)
  }

  func testARequestTransformThatThrowsEndsTheAttempt() async throws {
    struct Failure: Error {}
    let hooks = self.stream { request, next in
      try await next(request.map { _ in throw Failure() })
    }
    _ = try await hooks.request(self.head).outcome
    let kind = await self.misuse(hooks.requestMessage(Note("a")))
    XCTAssertEqual(kind, .letGoOfProceed)
  }
}

/// An interceptor in its async form that is made of closures.
struct NoteInterceptor: AsyncUnaryInterceptor, AsyncStreamInterceptor {
  typealias Unary =
    @Sendable (HTTPRequest<Note>, UnaryNext<Note, Note>) async throws -> ResponseMessage<Note>
  typealias Stream =
    @Sendable (StreamRequest<Note>, StreamNext<Note, Note>) async throws -> StreamResponse<Note>

  var unary: Unary = { request, next in try await next(request) }
  var stream: Stream = { request, next in try await next(request) }

  func interceptUnary<Input, Output>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    guard let request = request as? HTTPRequest<Note>, let next = next as? UnaryNext<Note, Note>,
      let response = try await self.unary(request, next) as? ResponseMessage<Output>
    else { return try await next(request) }
    return response
  }

  func interceptStream<Input, Output>(
    _ request: StreamRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: StreamNext<Input, Output>
  ) async throws -> StreamResponse<Output> {
    guard let request = request as? StreamRequest<Note>, let next = next as? StreamNext<Note, Note>,
      let response = try await self.stream(request, next) as? StreamResponse<Output>
    else { return try await next(request) }
    return response
  }
}
