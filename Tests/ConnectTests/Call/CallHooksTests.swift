import Connect
import ConnectTesting
import Dispatch
import NIOCore
import Synchronization
import XCTest

/// Call hooks, of unary calls and of streams.
final class CallHooksTests: XCTestCase {
  private struct Failure: Error {}

  /// The outcome of a call as one hook has seen it.
  private final class Seen: Sendable {
    private let log = Mutex<[CallOutcome]>([])

    var outcomes: [CallOutcome] { self.log.withLock { $0 } }

    var factory: InterceptorFactory {
      TestInterceptor.make { interceptor in
        interceptor.call.outcomeFunction = { outcome in self.log.withLock { $0.append(outcome) } }
      }
    }
  }

  // MARK: Order

  func testTheyStandOutsideOfAllOthers() async {
    let probe = InterceptorProbe()
    let factories = ["A", "B"].map { probe.factory($0, levels: [.call, .message, .byte]) }
    let response = await ProtocolClient.scripted(.echo(), interceptors: factories).unary(.unary, "x")
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(
      probe.events.outline,
      [
        "A call request", "B call request", "A message request", "B message request", "A byte request",
        "B byte request", "B byte response ok", "A byte response ok", "B message response ok",
        "A message response ok", "B call outcome ok", "A call outcome ok",
      ]
    )
  }

  func testStreamsHaveTheSame() async {
    let probe = InterceptorProbe()
    let client = ProtocolClient.scripted(
      ScriptedTransport(StreamChainTests.echo),
      interceptors: ["A", "B"].map { probe.factory($0, levels: [.call]) }
        + [probe.factory("M", levels: [.message])]
    )
    let results = await client.results(sending: ["x"])
    XCTAssertEqual(results, ["headers", "x", "end ok"])
    XCTAssertEqual(
      probe.events.outline,
      [
        "A call request", "B call request", "M message request", "M message request message",
        "M message result headers", "M message result message", "M message result end ok",
        "B call outcome ok", "A call outcome ok",
      ]
    )
  }

  func testACallPassesThemOnceHoweverOftenItIsTried() async {
    for level in [ScriptedInterceptor.Level.message, .byte] {
      let probe = InterceptorProbe()
      let transport = ScriptedTransport.replying([{ $0.reply(.unavailable) }, { $0.reply("\"ok\"") }])
      let client = ProtocolClient.scripted(
        transport,
        interceptors: [
          probe.factory("A", levels: [.call]), ScriptedInterceptor.factory(.retry(1), level: level),
          probe.factory("B", levels: [.call]),
        ]
      )
      let response = await client.unary(.unary, "x")
      XCTAssertEqual(response.message, "ok")
      XCTAssertEqual(
        probe.events.outline,
        ["A call request", "B call request", "B call outcome ok", "A call outcome ok"]
      )
      XCTAssertEqual(probe.events.values(CallOutcome.self).map(\.attempts), [2, 2])
    }
  }

  // MARK: Changes

  func testTheyChangeTheRequest() async throws {
    let seen = Events()
    let transport = ScriptedTransport.echo()
    let factories = [
      TestInterceptor.make { interceptor in
        interceptor.call.requestFunction = { request in
          request.headers["x-a"] = ["1"]
          request.context[Mark.self] = "marked"
        }
      },
      // One made anew keeps the context.
      TestInterceptor.make { interceptor in
        interceptor.call.requestFunction = { request in
          request = HTTPRequest(
            url: request.url,
            contentType: request.contentType,
            headers: ["x-a": request.headers["x-a"] + ["2"]]
          )
        }
      },
      TestInterceptor.make { interceptor in
        interceptor.call.requestFunction = { request in seen.add("\(request.timeout ?? .zero)") }
      },
      TestInterceptor.make { interceptor in
        interceptor.unaryMessages = UnaryMessageFunction(
          updateRequest: { request in
            seen.add("\(request.message.text) \(request.headers["x-a"]) \(request.context[Mark.self])")
          }
        )
      },
    ]
    let client = ProtocolClient.scripted(transport, interceptors: factories, timeout: .seconds(9))
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(try response.get(), "x")
    XCTAssertEqual(seen.all, ["9.0 seconds", #"x ["1", "2"] marked"#])
    XCTAssertEqual(transport.streams.first?.request.headers["x-a"], ["1", "2"])
  }

  private enum Mark: CallContextKey { static let defaultValue = "unmarked" }

  func testWhatTheyThrowIsTheCallsError() async {
    for isStream in [false, true] {
      let probe = InterceptorProbe()
      let transport = ScriptedTransport.echo()
      let unsent = Seen()
      let throwing = TestInterceptor.make { interceptor in
        interceptor.call.requestFunction = { _ in throw ConnectError(code: .permissionDenied, message: "no") }
      }
      let client = ProtocolClient.scripted(
        transport,
        interceptors: [
          probe.factory("A", levels: [.call]), unsent.factory, throwing,
          probe.factory("B", levels: [.call, .message]),
        ]
      )
      if isStream {
        let results = await client.results()
        XCTAssertEqual(results, ["end permission_denied"])
      } else {
        let error = await client.unary(.unary, "x").error
        XCTAssertEqual(error?.message, "no")
      }
      XCTAssertEqual(probe.events.outline, ["A call request", "A call outcome permission_denied"])
      XCTAssertEqual(unsent.outcomes.map { $0.error?.isUnsent }, [true])
      XCTAssertEqual(unsent.outcomes.map(\.attempts), [0])
      XCTAssertTrue(transport.streams.isEmpty)
    }
  }

  func testOuterHooksAddToWhatAnInnerOneHasThrown() async {
    let adding = TestInterceptor.make { interceptor in
      interceptor.call.outcomeFunction = { outcome in outcome.trailers["x-sent"] = ["\(outcome.messagesSent)"]
      }
    }
    let throwing = TestInterceptor.make { $0.call.requestFunction = { _ in throw Failure() } }
    let client = ProtocolClient.scripted(.echo(), interceptors: [adding, throwing])
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.trailers["x-sent"], ["1"])
    XCTAssertTrue(response.error?.exception is Failure)
  }

  func testAnyErrorWillDo() async {
    let client = ProtocolClient.scripted(
      .echo(),
      interceptors: [
        TestInterceptor.make { $0.call.requestFunction = { _ in throw Failure() } }
      ]
    )
    let error = await client.unary(.unary, "x").error
    XCTAssertEqual(error?.code, .unknown)
    XCTAssertTrue(error?.exception is Failure)
  }

  func testTheyChangeTheOutcome() async {
    let changing = TestInterceptor.make { interceptor in
      interceptor.call.outcomeFunction = { outcome in
        outcome.headers["x-seen"] = ["1"]
        outcome.trailers["x-end"] = ["2"]
      }
    }
    let response = await ProtocolClient.scripted(.echo(), interceptors: [changing]).unary(.unary, "x")
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(response.headers["x-seen"], ["1"])
    XCTAssertEqual(response.trailers["x-end"], ["2"])
  }

  func testTheyReplaceErrorsAndFailCallsButDoNotMakeThemSucceed() async {
    typealias Change = @Sendable (inout CallOutcome) -> Void
    let changes: [(String, Change, failing: Code, good: Code)] = [
      ("another error", { $0.error = ConnectError(code: .aborted) }, .aborted, .aborted),
      ("a code", { $0.code = .dataLoss }, .unavailable, .dataLoss),
      ("no error", { ($0.error, $0.code) = (nil, .ok) }, .unavailable, .ok),
      ("anew", { $0 = CallOutcome() }, .unavailable, .ok),
      ("nothing", { _ in }, .unavailable, .ok),
    ]
    for (name, change, failing, good) in changes {
      let factory = TestInterceptor.make { $0.call.outcomeFunction = change }
      let failed = await ProtocolClient.scripted(
        ScriptedTransport { $0.reply(.unavailable) },
        interceptors: [factory]
      ).unary(.unary, "x")
      XCTAssertEqual(failed.code, failing, name)
      XCTAssertEqual(failed.error?.code, failing, name)
      let succeeded = await ProtocolClient.scripted(.echo(), interceptors: [factory]).unary(.unary, "x")
      XCTAssertEqual(succeeded.code, good, name)
      XCTAssertEqual(succeeded.error?.code, good == .ok ? nil : good, name)
      XCTAssertEqual(succeeded.message, good == .ok ? "x" : nil, name)
      let client = ProtocolClient.scripted(ScriptedTransport(StreamChainTests.echo), interceptors: [factory])
      let results = await client.results(sending: ["x"])
      XCTAssertEqual(results, ["headers", "x", "end \(good)"], name)
    }
  }

  func testAnOutcomeMadeAnewKeepsTheCounts() async {
    for (outcome, code) in [
      (CallOutcome(error: ConnectError(code: .aborted)), Code.aborted), (CallOutcome(), .ok),
    ] {
      let seen = Seen()
      let replacing = TestInterceptor.make { $0.call.outcomeFunction = { $0 = outcome } }
      let emptying = TestInterceptor.make { interceptor in
        interceptor.call.outcomeFunction = { ($0.headers, $0.trailers) = (Headers(), Headers()) }
      }
      let response = await ProtocolClient.scripted(
        .echo(),
        interceptors: [seen.factory, replacing, emptying]
      ).unary(.unary, "x")
      XCTAssertEqual(response.code, code)
      XCTAssertEqual(seen.outcomes.map(\.code), [code])
      XCTAssertEqual(seen.outcomes.map(\.attempts), [1])
      XCTAssertEqual(seen.outcomes.map(\.messagesSent), [1])
      XCTAssertEqual(seen.outcomes.first?.exchange?.httpStatus, 200)
    }
  }

  /// What a hook has kept of another call, or of this one before it was changed, is another outcome than the one it is given.
  func testAnOutcomeThatWasKeptReplacesTheOneGiven() async {
    let kept = Box<CallOutcome?>(nil)
    let seen = Seen()
    let replacing = TestInterceptor.make { interceptor in
      interceptor.call.outcomeFunction = { outcome in
        if let earlier = kept.value { outcome = earlier } else { kept.value = outcome }
      }
    }
    let transport = ScriptedTransport.replying([{ $0.reply(.unavailable) }, { $0.reply($0.sentMessage) }])
    let client = ProtocolClient.scripted(transport, interceptors: [seen.factory, replacing])
    let first = await client.unary(.unary, "x")
    let second = await client.unary(.unary, "x")
    XCTAssertEqual([first.code, second.code], [.unavailable, .unavailable])
    XCTAssertEqual(second.error?.code, .unavailable)
    XCTAssertEqual(seen.outcomes.map(\.code), [.unavailable, .unavailable])
  }

  func testAnEarlierSuccessDoesNotTakeBackAnError() async {
    let kept = Box<CallOutcome?>(nil)
    let seen = Seen()
    let client = ProtocolClient.scripted(
      .echo(),
      interceptors: [
        seen.factory,
        TestInterceptor.make { $0.call.outcomeFunction = { if let earlier = kept.value { $0 = earlier } } },
        TestInterceptor.make { $0.call.outcomeFunction = { $0.error = ConnectError(code: .aborted) } },
        TestInterceptor.make { $0.call.outcomeFunction = { kept.value = $0 } },
      ]
    )
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.error?.code, .aborted)
    XCTAssertEqual(seen.outcomes.map(\.code), [.aborted])
  }

  /// A hook may read and copy an outcome, and change what its copy says.
  func testReadingAnOutcomeDoesNotChangeIt() async {
    let reading = TestInterceptor.make { interceptor in
      interceptor.call.outcomeFunction = { outcome in
        var copy = outcome
        copy.headers.add(name: "x-copy", value: "1")
        copy.error = ConnectError(code: .aborted)
      }
    }
    let response = await ProtocolClient.scripted(.echo(), interceptors: [reading]).unary(.unary, "x")
    XCTAssertEqual(response.message, "x")
    XCTAssertFalse(response.headers.contains("x-copy"))
  }

  // MARK: What they are told

  func testTheOutcomeOfAUnaryCall() async throws {
    let seen = Seen()
    let client = ProtocolClient.scripted(.echo(), interceptors: [seen.factory])
    _ = await client.unary(.unary, "hello")
    let outcome = try XCTUnwrap(seen.outcomes.first)
    XCTAssertEqual(seen.outcomes.count, 1)
    XCTAssertEqual(outcome.code, .ok)
    XCTAssertEqual([outcome.messagesSent, outcome.messagesReceived, outcome.attempts], [1, 1, 1])
    XCTAssertEqual(outcome.exchange?.httpStatus, 200)
    XCTAssertEqual(outcome.exchange?.requestBodyBytes, 7)
    XCTAssertEqual(outcome.exchange?.responseBodyBytes, 7)
  }

  func testTheOutcomeOfAStream() async throws {
    let seen = Seen()
    let client = ProtocolClient.scripted(
      ScriptedTransport(StreamChainTests.echo),
      interceptors: [seen.factory]
    )
    _ = await client.results(sending: ["a", "b", "c"])
    let outcome = try XCTUnwrap(seen.outcomes.first)
    XCTAssertEqual(seen.outcomes.count, 1)
    XCTAssertEqual([outcome.messagesSent, outcome.messagesReceived, outcome.attempts], [3, 3, 1])
    // Three messages of three bytes in envelopes of five, and the end of the response.
    XCTAssertEqual(outcome.exchange?.requestBodyBytes, 24)
    XCTAssertGreaterThan(outcome.exchange?.responseBodyBytes ?? 0, 24)
  }

  func testABadResponseIsTheirsToSee() async {
    let seen = Seen()
    let client = ProtocolClient.scripted(
      ScriptedTransport { $0.reply("no JSON") },
      interceptors: [seen.factory]
    )
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(seen.outcomes.map(\.code), [response.code])
    XCTAssertEqual(seen.outcomes.map(\.messagesReceived), [0])
    XCTAssertEqual(seen.outcomes.first?.exchange?.httpStatus, 200)
  }

  func testHedgesAreAttempts() async {
    let seen = Seen()
    let transport = ScriptedTransport.replying([{ _ in }, { $0.reply("\"ok\"") }])
    let client = ProtocolClient.scripted(transport, interceptors: [seen.factory]) {
      $0.hedging = { _ in HedgingPolicy(delay: .seconds(1), allowsSideEffects: true) }
    }
    let ended = Events()
    client.unary(.unary, "x") { ended.add($0.message?.text ?? "\($0.code)") }
    transport.virtualExecutor.runUntilIdle()
    transport.virtualExecutor.advance(by: .seconds(1))
    XCTAssertEqual(ended.all, ["ok"])
    XCTAssertEqual(seen.outcomes.map(\.attempts), [2])
    XCTAssertEqual(seen.outcomes.first?.exchange?.responseBodyBytes, 4)
  }

  func testHedgesThatRunIntoTheDeadline() {
    let seen = Seen()
    let transport = ScriptedTransport.silent()
    let client = ProtocolClient.scripted(transport, interceptors: [seen.factory], timeout: .seconds(5)) {
      $0.hedging = { _ in HedgingPolicy(delay: .seconds(1), allowsSideEffects: true) }
    }
    let ended = Events()
    client.unary(.unary, "x") { ended.add("\($0.code)") }
    transport.virtualExecutor.runUntilIdle()
    transport.virtualExecutor.advance(by: .seconds(5))
    XCTAssertEqual(ended.all, ["deadline_exceeded"])
    XCTAssertEqual(seen.outcomes.map(\.attempts), [2])
    XCTAssertEqual(seen.outcomes.first?.exchange?.requestBodyBytes, 3)
    XCTAssertNil(seen.outcomes.first?.exchange?.httpStatus)
  }

  func testWhatWasNotSentIsNoAttempt() async {
    let seen = Seen()
    let client = ProtocolClient.scripted(.echo(), interceptors: [seen.factory])
    let options = CallOptions(headers: ["host": ["elsewhere"]])
    let response = await client.unary(.unary, "x", options: options)
    XCTAssertEqual(response.code, .invalidArgument)
    XCTAssertEqual(seen.outcomes.map(\.attempts), [0])
    XCTAssertNil(seen.outcomes.first?.exchange)
  }

  func testWhatAHookSendsOnItsOwnStreamWaits() async {
    let handle = Observed<StreamHandle<Text, Text>?>(nil)
    let accepted = Events()
    let sending = TestInterceptor.make { interceptor in
      interceptor.call.requestFunction = { _ in
        handle.value?.send("early") { accepted.add("\($0?.code ?? .ok)") }
        handle.value?.finish()
      }
    }
    let transport = ScriptedTransport(StreamChainTests.echo)
    let client = ProtocolClient.scripted(transport, interceptors: [sending])
    let results = Events()
    // The call starts when the hook has its handle.
    let gate = DispatchSemaphore(value: 0)
    transport.virtualExecutor.execute { gate.wait() }
    let stream = client.bidirectionalStream(.bidirectional) { results.add($0.short) }
    handle.update { $0 = stream }
    gate.signal()
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(accepted.all, ["ok"])
    XCTAssertEqual(results.all, ["headers", "early", "end ok"])
    handle.update { $0 = nil }
  }

  // MARK: Ends

  func testDeadlineAndCancellation() async throws {
    for isCancelled in [false, true] {
      for isStream in [false, true] {
        let seen = Seen()
        let transport = ScriptedTransport.silent()
        let ignored = TestInterceptor.make {
          $0.call.outcomeFunction = { $0.error = ConnectError(code: .aborted) }
        }
        let client = ProtocolClient.scripted(
          transport,
          interceptors: [ignored, seen.factory],
          timeout: .seconds(1)
        )
        let expected = isCancelled ? Code.canceled : .deadlineExceeded
        if isStream {
          let stream = client.bidirectionalStream(.bidirectional)
          transport.virtualExecutor.runUntilIdle()
          if isCancelled { stream.cancel() }
          transport.virtualExecutor.advance(by: .seconds(1))
          var results: [String] = []
          for await result in stream.results { results.append(result.short) }
          XCTAssertEqual(results, ["end \(expected)"])
        } else {
          let codes = Events()
          let handle = client.unary(.unary, "x") { codes.add("\($0.code)") }
          transport.virtualExecutor.runUntilIdle()
          if isCancelled { handle.cancel() }
          transport.virtualExecutor.advance(by: .seconds(1))
          XCTAssertEqual(codes.all, ["\(expected)"])
        }
        XCTAssertEqual(seen.outcomes.map(\.code), [expected])
      }
    }
  }

  func testAHookThatCancelsTheCallEndsItOnce() async {
    for isAtEnd in [false, true] {
      let cancellation = CallCancellation()
      let seen = Seen()
      let cancelling = TestInterceptor.make { interceptor in
        if isAtEnd {
          interceptor.call.outcomeFunction = { _ in cancellation.cancel() }
        } else {
          interceptor.call.requestFunction = { _ in cancellation.cancel() }
        }
      }
      let transport = ScriptedTransport.echo()
      let client = ProtocolClient.scripted(transport, interceptors: [seen.factory, cancelling])
      var options = CallOptions()
      options.context.cancellation = cancellation
      let ended = Events()
      client.unary(.unary, "x", options: options) { ended.add("\($0.code)") }
      transport.virtualExecutor.runUntilIdle()
      // At its end a call is decided: cancelling it changes nothing.
      XCTAssertEqual(ended.all, isAtEnd ? ["ok"] : ["canceled"])
      XCTAssertEqual(seen.outcomes.map { "\($0.code)" }, ended.all)
      XCTAssertEqual(seen.outcomes.map { $0.error?.isUnsent }, isAtEnd ? [nil] : [true])
      XCTAssertEqual(transport.streams.count, isAtEnd ? 1 : 0)
    }
  }

  func testACallThatNobodyCanGoOnWithTellsThem() async {
    for isStream in [false, true] {
      let seen = Seen()
      let dropping = TestInterceptor.make { interceptor in
        interceptor.unaryBytes.requestFunction = { _, _ in }
        interceptor.streamBytes.requestFunction = { _, _ in }
      }
      let transport = ScriptedTransport.echo()
      let client = ProtocolClient.scripted(transport, interceptors: [seen.factory, dropping])
      let ended = Signal<String>()
      if isStream {
        client.serverStream(.serverStream, "x") { ended.fire($0.short) }
      } else {
        client.unary(.unary, "x") { ended.fire("end \($0.code)") }
      }
      // The end is found in a task, wherever the last copy of `proceed` was released.
      let end = await ended.wait()
      XCTAssertEqual(seen.outcomes.map { "end \($0.code)" }, [end])
    }
  }

  // MARK: Interceptors without hooks

  func testNoInterceptorIsLeftOut() async {
    let arranged = Events()
    let client = ProtocolClient.scripted(
      .echo(),
      interceptors: [{ _ in NoInterceptor() }, TestInterceptor.make { _ in }, { _ in NoInterceptor() }]
    )
    var options = CallOptions()
    options.arrangement = { interceptors in
      arranged.add("\(interceptors.count)")
      return interceptors
    }
    let response = await client.unary(.unary, "x", options: options)
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(arranged.all, ["1"])
  }

  func testAnInterceptorHearsOfTheMethodFirst() async {
    let asked = Events()
    final class Asked: Interceptor {
      let asked: Events
      init(_ asked: Events) { self.asked = asked }
      func callFunction(_ method: MethodInfo) -> CallFunction {
        self.asked.add("call \(method.name)")
        return CallFunction()
      }
      func unaryFunction() -> UnaryFunction {
        self.asked.add("bytes")
        return UnaryFunction()
      }
      func unaryMessageFunction<Input, Output>(
        _ method: MethodSpec<Input, Output>
      ) -> UnaryMessageFunction<Input, Output> {
        self.asked.add("messages")
        return UnaryMessageFunction()
      }
    }
    _ = await ProtocolClient.scripted(.echo(), interceptors: [{ _ in Asked(asked) }]).unary(.unary, "x")
    XCTAssertEqual(asked.all.first, "call Unary")
    XCTAssertEqual(asked.all.sorted(), ["bytes", "call Unary", "messages"])
  }
}
