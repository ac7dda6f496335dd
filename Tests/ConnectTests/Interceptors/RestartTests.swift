import Connect
import ConnectTesting
import NIOCore
import XCTest

/// Retries from the start of the whole chain (`RetryStart.start`), from every level and in every form.
final class RestartTests: XCTestCase {
  private static let failing: ScriptedTransport.Script = { $0.reply(.unavailable) }
  private static let fine: ScriptedTransport.Script = { $0.reply($0.sentMessage) }

  /// The forms in which an interceptor can ask for a retry from the start.
  private enum Form: CaseIterable {
    case call, message, byte, update, asyncMessage, asyncByte

    /// Asks for a retry after errors, at most so often.
    func factory(_ limit: Int, after delay: Duration = .zero) -> InterceptorFactory {
      { _ in
        let count = Box(0)
        let asks: @Sendable (ConnectError?) -> Bool = { $0 != nil && count.increment() <= limit }
        var interceptor = TestInterceptor()
        switch self {
        case .call:
          interceptor.call.retryFunction = { asks($0.error) ? RetryRequest(after: delay) : nil }
        case .message:
          interceptor.unaryMessages.responseFunction = { response, proceed in
            if asks(response.error) { proceed.retry(after: delay, from: .start) } else { proceed(response) }
          }
        case .byte:
          interceptor.unaryBytes.responseFunction = { response, proceed in
            if asks(response.error) { proceed.retry(after: delay, from: .start) } else { proceed(response) }
          }
        case .update:
          interceptor.unaryBytes = UnaryFunction(updateResponse: { response in
            asks(response.error) ? .restart(after: delay) : .proceed
          })
        case .asyncMessage:
          return TestAsyncInterceptor(unary: { request, next in
            let response = try await next(request)
            if asks(response.error) { throw RetryRequest(after: delay) }
            return response
          })
        case .asyncByte:
          return ByteRetrying { asks($0.error) ? RetryRequest(after: delay) : nil }
        }
        return interceptor
      }
    }
  }

  private struct ByteRetrying: AsyncUnaryByteInterceptor {
    let retry: @Sendable (HTTPResponse) -> RetryRequest?

    func interceptUnaryBytes(
      _ request: HTTPRequest<ByteBuffer>,
      method: MethodInfo,
      next: UnaryByteNext
    ) async throws -> HTTPResponse {
      let response = try await next(request)
      if let retry = self.retry(response) { throw retry }
      return response
    }
  }

  // MARK: Unary calls

  func testTheRequestPassesTheWholeChainAgain() async {
    for form in Form.allCases {
      let probe = InterceptorProbe()
      let transport = ScriptedTransport.replying([Self.failing, Self.fine])
      let client = ProtocolClient.scripted(
        transport,
        interceptors: [
          probe.factory("A", levels: [.call, .message, .byte]), form.factory(1),
        ]
      )
      let response = await client.unary(.unary, "x")
      XCTAssertEqual(response.message, "x", "\(form)")
      XCTAssertEqual(transport.streams.count, 2, "\(form)")
      let request = ["A call request", "A message request", "A byte request"]
      // Message and byte hooks stand inside of call hooks, and byte hooks inside of async message interceptors.
      let seen: [String] =
        switch form {
        case .call: ["A byte response unavailable", "A message response unavailable"]
        case .message, .asyncMessage: ["A byte response unavailable"]
        case .byte, .update, .asyncByte: []
        }
      XCTAssertEqual(
        probe.events.outline,
        request + seen + request
          + ["A byte response ok", "A message response ok", "A call outcome ok"],
        "\(form)"
      )
    }
  }

  func testOneCapCountsAllRetries() async {
    for form in Form.allCases {
      let transport = ScriptedTransport(Self.failing)
      let client = ProtocolClient.scripted(
        transport,
        interceptors: [ScriptedInterceptor.factory(.retry(1), level: .byte), form.factory(.max)]
      ) { $0.retries.maximumRetries = 4 }
      let response = await client.unary(.unary, "x")
      XCTAssertEqual(response.code, .unavailable, "\(form)")
      XCTAssertEqual(response.error?.message, "scripted", "the last real error passes on: \(form)")
      XCTAssertEqual(transport.streams.count, 5, "\(form)")
    }
  }

  func testARetryWaitsForItsDelayWithinTheDeadline() async throws {
    for form in Form.allCases {
      let transport = ScriptedTransport.replying([Self.failing, Self.fine])
      let client = ProtocolClient.scripted(
        transport,
        interceptors: [form.factory(.max, after: .seconds(10))],
        timeout: .seconds(60)
      )
      let (_, outcome) = client.outcome(of: "x")
      // Async interceptors run elsewhere.
      for _ in 0..<5000 where !transport.virtualExecutor.scheduled.contains(.seconds(10)) {
        try await Task.sleep(for: .milliseconds(1))
      }
      XCTAssertEqual(transport.streams.count, 1, "\(form)")
      transport.virtualExecutor.advance(by: .seconds(10))
      let response = await outcome.wait()
      XCTAssertEqual(response.message, "x", "\(form)")
    }
  }

  func testADelayBehindTheDeadlineIsRefused() async {
    for form in Form.allCases {
      let transport = ScriptedTransport(Self.failing)
      let client = ProtocolClient.scripted(
        transport,
        interceptors: [form.factory(.max, after: .seconds(60))],
        timeout: .seconds(30)
      )
      let response = await client.unary(.unary, "x")
      XCTAssertEqual(response.code, .unavailable, "\(form)")
      XCTAssertEqual(transport.streams.count, 1, "\(form)")
    }
  }

  func testARequestWithAnotherMessageAndHeaders() async {
    let other: @Sendable (HTTPRequest<Text>) -> HTTPRequest<Text> = { request in
      var request = request
      request.message = "other"
      request.headers["x-again"] = ["1"]
      return request
    }
    let asking: [InterceptorFactory] = [
      { _ in
        var given: HTTPRequest<Text>?
        var interceptor = TestInterceptor()
        interceptor.unaryMessages = UnaryMessageFunction(
          requestFunction: { request, proceed in
            given = request
            proceed(.success(request))
          },
          responseFunction: { response, proceed in
            guard response.error != nil, let given else { return proceed(response) }
            proceed.retry(other(given), from: .start)
          }
        )
        return interceptor
      },
      TestAsyncInterceptor.unary { request, next in
        let response = try await next(request)
        if response.error != nil { throw RetryRequest(other(request)) }
        return response
      },
      TestAsyncInterceptor.unary { request, next in
        let response = try await next(request)
        if response.error != nil { throw RetryRequest(other(request), from: .level) }
        return response
      },
    ]
    for (index, factory) in asking.enumerated() {
      let transport = ScriptedTransport.replying([Self.failing, Self.fine])
      let client = ProtocolClient.scripted(transport, interceptors: [factory])
      let response = await client.unary(.unary, "x")
      XCTAssertEqual(response.message, "other", "\(index)")
      XCTAssertEqual(transport.streams.map { $0.request.headers["x-again"] }, [[], ["1"]], "\(index)")
    }
  }

  /// Where the message has another type, URL, headers and context count, and the message stays.
  func testARequestWithoutTheMethodsMessage() async {
    let asking: [InterceptorFactory] = [
      { _ in
        var given: HTTPRequest<Void>?
        var interceptor = TestInterceptor()
        interceptor.call.requestFunction = { given = $0 }
        interceptor.call.retryFunction = { outcome in
          guard outcome.error != nil, var request = given else { return nil }
          request.headers["x-again"] = ["1"]
          return RetryRequest(request)
        }
        return interceptor
      },
      { _ in
        var given: HTTPRequest<ByteBuffer>?
        var interceptor = TestInterceptor()
        interceptor.unaryBytes = UnaryFunction(
          requestFunction: { request, proceed in
            given = request
            proceed(.success(request))
          },
          responseFunction: { response, proceed in
            guard response.error != nil, var request = given else { return proceed(response) }
            request.headers["x-again"] = ["1"]
            request.message = ByteBuffer(string: "\"other\"")
            proceed.retry(request, from: .start)
          }
        )
        return interceptor
      },
      TestAsyncInterceptor.unary { request, next in
        let response = try await next(request)
        guard response.error != nil else { return response }
        var again = request.with(7)
        again.headers["x-again"] = ["1"]
        throw RetryRequest(again)
      },
      TestAsyncInterceptor.unary { request, next in
        let response = try await next(request)
        guard response.error != nil else { return response }
        var again = request.with(())
        again.headers["x-again"] = ["1"]
        throw RetryRequest(again, from: .level)
      },
    ]
    for (index, factory) in asking.enumerated() {
      let transport = ScriptedTransport.replying([Self.failing, Self.fine])
      let client = ProtocolClient.scripted(transport, interceptors: [factory])
      let response = await client.unary(.unary, "x")
      XCTAssertEqual(response.message, "x", "\(index)")
      XCTAssertEqual(transport.streams.map { $0.request.headers["x-again"] }, [[], ["1"]], "\(index)")
    }
  }

  func testOuterHooksSeeTheRequestAgainButNotTheAbandonedAttempt() async {
    let ends = Events()
    let count = Box(0)
    let outer: InterceptorFactory = { _ in
      let instance = count.increment()
      return FixedCallHooks(
        CallFunction(
          requestFunction: { request in
            ends.add("request \(instance)")
            request.headers.add(name: "x-outer", value: "1")
          },
          outcomeFunction: { ends.add("outcome \($0.code) \($0.attempts)") },
          endFunction: { ends.add("end \($0.code)") }
        )
      )
    }
    let inner: InterceptorFactory = { _ in
      FixedCallHooks(CallFunction(outcomeFunction: { ends.add("inner \($0.code)") }))
    }
    let transport = ScriptedTransport.replying([Self.failing, Self.fine])
    let client = ProtocolClient.scripted(transport, interceptors: [outer, Form.call.factory(1), inner])
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(
      ends.all,
      ["request 1", "inner unavailable", "request 1", "inner ok", "outcome ok 2", "end ok"]
    )
    // The second request begins with the caller's.
    XCTAssertEqual(transport.streams.map { $0.request.headers["x-outer"] }, [["1"], ["1"]])
  }

  func testACallHookThatThrowsCanBeRetriedByAnOuterOne() async {
    let throwing: InterceptorFactory = { _ in
      var isFirst = true
      return FixedCallHooks(
        CallFunction(requestFunction: { _ in
          defer { isFirst = false }
          if isFirst { throw ConnectError(code: .aborted, message: "not yet") }
        })
      )
    }
    let transport = ScriptedTransport(Self.fine)
    let client = ProtocolClient.scripted(transport, interceptors: [Form.call.factory(1), throwing])
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(transport.streams.count, 1)
  }

  func testARequestHookThatFailsTheSecondTimeEndsTheCall() async {
    let failing: InterceptorFactory = { _ in
      var count = 0
      return FixedCallHooks(
        CallFunction(requestFunction: { _ in
          count += 1
          if count > 1 { throw ConnectError(code: .permissionDenied, message: "no more") }
        })
      )
    }
    for form in Form.allCases {
      let transport = ScriptedTransport(Self.failing)
      let client = ProtocolClient.scripted(transport, interceptors: [failing, form.factory(1)])
      let response = await client.unary(.unary, "x")
      XCTAssertEqual(response.code, .permissionDenied, "\(form)")
      XCTAssertEqual(transport.streams.count, 1, "\(form)")
    }
  }

  /// Whoever has seen a request hears of the end, also if the second start does not reach it.
  func testHooksThatWaitFromAnEarlierStartAreTold() async {
    for form in [Form.byte, .asyncByte, .message] {
      let events = Events()
      let gate: InterceptorFactory = { _ in
        var count = 0
        return FixedCallHooks(
          CallFunction(requestFunction: { _ in
            count += 1
            if count > 1 { throw ConnectError(code: .permissionDenied, message: "no more") }
          })
        )
      }
      let waiting: InterceptorFactory = { _ in
        var interceptor = TestInterceptor()
        interceptor.call.outcomeFunction = { events.add("outcome \($0.code)") }
        interceptor.unaryMessages.responseFunction = { response, proceed in
          events.add("response \(response.code)")
          proceed(response)
        }
        return interceptor
      }
      let client = ProtocolClient.scripted(
        ScriptedTransport(Self.failing),
        interceptors: [gate, waiting, form.factory(1)]
      )
      let response = await client.unary(.unary, "x")
      XCTAssertEqual(response.code, .permissionDenied, "\(form)")
      XCTAssertEqual(events.all, ["response permission_denied", "outcome permission_denied"], "\(form)")
    }
  }

  func testACancellationByAHookIsNotLostInARetry() async {
    let transport = ScriptedTransport(Self.failing)
    let handle = Box<CallHandle?>(nil)
    let events = Events()
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        { _ in
          FixedCallHooks(
            CallFunction(
              outcomeFunction: { events.add("\($0.code)") },
              retryFunction: { _ in RetryRequest() }
            )
          )
        },
        { _ in FixedCallHooks(CallFunction(outcomeFunction: { _ in handle.value?.cancel() })) },
      ]
    )
    let outcome = Signal<ResponseMessage<Text>>()
    transport.virtualExecutor.sync {
      handle.value = client.unary(.unary, "x") { outcome.fire($0) }
    }
    let response = await outcome.wait()
    XCTAssertEqual(response.code, .canceled)
    XCTAssertEqual(transport.streams.count, 1)
    XCTAssertEqual(events.all, ["canceled"])
  }

  func testARetryOfASuccess() async {
    let transport = ScriptedTransport.replying([{ $0.reply("\"old\"") }, { $0.reply("\"new\"") }])
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        { _ in
          var interceptor = TestInterceptor()
          interceptor.unaryMessages.responseFunction = { response, proceed in
            if response.message == "old" { proceed.retry(from: .start) } else { proceed(response) }
          }
          return interceptor
        }
      ]
    )
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.message, "new")
  }

  func testTheDeadlineAndCancellationEndACallThatWaitsToStartAgain() async throws {
    for form in Form.allCases {
      for cancels in [false, true] {
        let ends = Events()
        let transport = ScriptedTransport(Self.failing)
        let client = ProtocolClient.scripted(
          transport,
          interceptors: [
            { _ in
              FixedCallHooks(
                CallFunction(
                  outcomeFunction: { ends.add("outcome \($0.code)") },
                  endFunction: { ends.add("end \($0.code)") }
                )
              )
            }, form.factory(.max, after: .seconds(10)),
          ],
          timeout: .seconds(15)
        )
        let (handle, outcome) = client.outcome(of: "x")
        for start in [10, 20] {
          for _ in 0..<5000 where !transport.virtualExecutor.scheduled.contains(.seconds(start)) {
            try await Task.sleep(for: .milliseconds(1))
            if start == 20, outcome.count > 0 { break }
          }
          if cancels { break }
          transport.virtualExecutor.advance(by: .seconds(start == 10 ? 10 : 5))
        }
        if cancels { handle.cancel() }
        let response = await outcome.wait()
        transport.virtualExecutor.runUntilIdle()
        // The second delay would pass the deadline, so that the error passes on.
        XCTAssertEqual(response.code, cancels ? .canceled : .unavailable, "\(form)")
        XCTAssertEqual(ends.all, ["outcome \(response.code)", "end \(response.code)"], "\(form)")
        XCTAssertEqual(outcome.count, 0)
      }
    }
  }

  /// An async interceptor outside of the one that asks is called afresh.
  func testAnOuterAsyncInterceptorIsCalledAfresh() async throws {
    for form in Form.allCases where form != .call {
      let events = Events()
      let transport = ScriptedTransport.replying([Self.failing, Self.fine])
      let client = ProtocolClient.scripted(
        transport,
        interceptors: [
          TestAsyncInterceptor.unary { request, next in
            events.add("called")
            do {
              let response = try await next(request)
              events.add("\(response.code)")
              return response
            } catch {
              events.add("\(error is CancellationError)")
              throw error
            }
          }, form.factory(1),
        ]
      )
      let response = await client.unary(.unary, "x")
      XCTAssertEqual(response.message, "x", "\(form)")
      // The first task is cancelled, and ends on a thread of its own: maybe after the call.
      for _ in 0..<5000 where events.count("true") == 0 { try await Task.sleep(for: .milliseconds(1)) }
      XCTAssertEqual(events.count("called"), 2, "\(form)")
      XCTAssertEqual(events.count("true"), 1, "\(form)")
      XCTAssertEqual(events.count("ok"), 1, "\(form)")
    }
  }

  func testAnAsyncInterceptorThatAsksWithoutHavingSentAnything() async {
    let count = Box(0)
    let transport = ScriptedTransport(Self.fine)
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestAsyncInterceptor.unary { request, next in
          if count.increment() < 3 { throw RetryRequest() }
          return try await next(request)
        }
      ]
    )
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(count.value, 3)
    let endless = ProtocolClient.scripted(
      transport,
      interceptors: [TestAsyncInterceptor.unary { _, _ in throw RetryRequest() }]
    )
    let refused = await endless.unary(.unary, "x")
    XCTAssertEqual(refused.code, .resourceExhausted)
  }

  func testACallThatIsNotUnderWayAnyMoreIgnoresIt() async throws {
    let later = Signal<@Sendable () -> Void>()
    let transport = ScriptedTransport(Self.failing)
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        { _ in
          var interceptor = TestInterceptor()
          interceptor.unaryBytes.responseFunction = { response, proceed in
            later.fire { proceed.retry(from: .start) }
          }
          return interceptor
        }
      ],
      timeout: .seconds(1)
    )
    let (_, outcome) = client.outcome(of: "x")
    let retry = await later.wait()
    transport.virtualExecutor.advance(by: .seconds(1))
    let response = await outcome.wait()
    XCTAssertEqual(response.code, .deadlineExceeded)
    retry()
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(transport.streams.count, 1)
    XCTAssertEqual(outcome.count, 0)
  }
}

/// An interceptor with these call hooks.
private struct FixedCallHooks: Interceptor {
  let hooks: CallFunction

  init(_ hooks: CallFunction) { self.hooks = hooks }

  func callFunction(_ method: MethodInfo) -> CallFunction { self.hooks }
}
