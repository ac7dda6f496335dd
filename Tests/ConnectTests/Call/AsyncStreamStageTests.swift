import Connect
import ConnectTesting
import NIOCore
import XCTest

/// What an async interceptor of streams sees and may do at each stage of a stream, with its tasks on the executor, so that
/// the order of all that happens is certain.
final class AsyncStreamStageTests: XCTestCase {
  private struct Failure: Error {}

  private static func response(_ text: String) -> ScriptedTransport.Script {
    { stream in
      stream.onFinish = { stream in
        stream.respondStream()
        stream.sendMessage("\"\(text)\"")
        for message in stream.sentMessages { stream.sendMessage(message) }
        stream.endStream()
      }
    }
  }

  /// Waits until the task is cancelled.
  private static func cancellation() async {
    let signal = Signal<Void>()
    await withTaskCancellationHandler {
      await signal.wait()
    } onCancel: {
      signal.fire()
    }
  }

  // MARK: Without next, and behind it

  private struct Way {
    let name: String
    let body: TestAsyncInterceptor.Stream
    let results: [String]
    /// What the attempt is asked for last; nil if there is none.
    var lastCall: String?
  }

  private static let ways = [
    Way(
      name: "an answer",
      body: { _, _ in StreamResponse(StreamAnswer(messages: ["1"])) },
      results: ["headers", "1", "end ok"]
    ),
    Way(
      name: "an answer that fails",
      body: { _, _ in StreamResponse(StreamAnswer(messages: ["1"], error: ConnectError(code: .aborted))) },
      results: ["headers", "1", "end aborted"]
    ),
    Way(
      name: "no results at all",
      body: { _, _ in StreamResponse(results: PulledSequence([])) },
      results: ["end ok"]
    ),
    Way(
      name: "an error before next",
      body: { _, _ in throw ConnectError(code: .aborted) },
      results: ["end aborted"]
    ),
    Way(name: "another error", body: { _, _ in throw Failure() }, results: ["end unknown"]),
    Way(
      name: "an error behind next",
      body: { request, next in
        _ = try await next(request)
        throw ConnectError(code: .aborted)
      },
      results: ["end aborted"],
      lastCall: "cancel"
    ),
    Way(
      name: "an answer behind next",
      body: { request, next in
        _ = try await next(request)
        return StreamResponse(StreamAnswer(messages: ["1"]))
      },
      results: ["headers", "1", "end ok"],
      lastCall: "cancel"
    ),
    Way(
      name: "an error between messages",
      body: { request, next in
        try await next(request).map { message in
          if message == "b" { throw ConnectError(code: .aborted) }
          return message
        }
      },
      results: ["headers", "a", "end aborted"],
      lastCall: "cancel"
    ),
    Way(
      name: "an end between messages",
      body: { request, next in
        StreamResponse(results: PulledSequence(try await next(request).results.prefix(2)))
      },
      results: ["headers", "a", "end ok"],
      lastCall: "cancel"
    ),
    Way(
      name: "messages of its own behind the end",
      body: { request, next in
        let results = try await next(request).results
        let messages = PulledSequence(results.filter { if case .complete = $0 { false } else { true } })
        return StreamResponse(results: messages.followed(by: PulledSequence([.message("own")])))
      },
      results: ["headers", "a", "b", "own", "end ok"],
      lastCall: "finish"
    ),
  ]

  /// Whatever it does, the stream ends once, inner hooks and the server hear of it, and nothing is left.
  func testEachWay() {
    for way in Self.ways {
      let inner = Events()
      let observing = TestInterceptor.make { interceptor in
        interceptor.streamMessages.requestFunction = { request, proceed in
          inner.add("head")
          proceed(.success(request))
        }
      }
      weak var leaked: Events?
      do {
        let token = Events()
        leaked = token
        let body = way.body
        let stream = SteppedStream(
          interceptors: [
            TestAsyncInterceptor.stream { request, next in
              token.add("called")
              return try await body(request, next)
            }, observing,
          ]
        ) { $0.onFinish = { _ in } }
        stream.send("x")
        if !stream.attempts.isEmpty, !stream.attempts[0].isOver {
          stream.finish()
          stream.server { $0.respondStream() }
          stream.reply("a", "b")
          stream.server { if !$0.isOver { $0.endStream() } }
        }
        stream.assertEnded(way.results, way.name)
        XCTAssertEqual(token.all, ["called"], way.name)
        XCTAssertEqual(stream.attempts.last?.calls.last, way.lastCall, way.name)
        XCTAssertEqual(inner.all, way.lastCall == nil ? [] : ["head"], way.name)
      }
      XCTAssertNil(leaked, way.name)
    }
  }

  // MARK: next again

  func testNextAgainAfterASuccess() {
    let transportScripts = [Self.response("first"), Self.response("second")]
    let count = Box(0)
    let stream = SteppedStream(
      interceptors: [
        TestAsyncInterceptor.stream { request, next in
          var first: [String] = []
          for try await result in try await next(request).results { first.append(result.short) }
          XCTAssertEqual(first, ["headers", "first", "a", "b", "end ok"])
          return try await next(request)
        }
      ]
    ) { transportScripts[min(count.increment(), 2) - 1]($0) }
    stream.send("a", "b")
    stream.finish()
    stream.assertEnded(["headers", "second", "a", "b", "end ok"])
    XCTAssertEqual(
      stream.attempts.map(\.calls),
      Array(repeating: ["write 8", "write 8", "finish"], count: 2)
    )
  }

  /// Errors can be recovered as long as nothing has gone out; headers that wait for a message do not count.
  func testRecoveringFromErrors() {
    for (messages, expected, attemptCount) in [
      ([], ["headers", "a", "end ok"], 2), (["1"], ["headers", "1", "end unavailable"], 1),
    ] {
      let stream = SteppedStream(
        interceptors: [
          TestAsyncInterceptor.stream { request, next in
            try await next(request).recoverErrors { _ in try await next(request) }
          }
        ]
      )
      stream.send("x")
      stream.finish()
      stream.server { scripted in
        scripted.respondStream()
        for message in messages { scripted.sendMessage("\"\(message)\"") }
        scripted.endStream(.unavailable)
      }
      XCTAssertEqual(stream.attempts.count, attemptCount)
      if attemptCount == 2 {
        XCTAssertEqual(stream.written, ["x"])
        stream.server { scripted in
          scripted.respondStream()
          scripted.sendMessage("\"a\"")
          scripted.endStream()
        }
      }
      stream.assertEnded(expected)
    }
  }

  /// Messages that are sent after the second `next` go out behind those that are sent again.
  func testMessagesThatComeAfterNextWasCalledAgain() {
    let stream = SteppedStream(
      interceptors: [
        TestAsyncInterceptor.stream { request, next in
          try await next(request).recoverErrors { _ in try await next(request) }
        }
      ]
    )
    stream.send("a", "b")
    stream.server { $0.fail(ConnectError(code: .unavailable)) }
    XCTAssertEqual(stream.attempts.count, 2)
    XCTAssertEqual(stream.written, ["a", "b"])
    stream.send("c")
    stream.finish()
    XCTAssertEqual(stream.written, ["a", "b", "c"])
    XCTAssertEqual(stream.attempts[1].calls.last, "finish")
    stream.server { scripted in
      scripted.respondStream()
      scripted.endStream()
    }
    stream.assertEnded(["headers", "end ok"])
    XCTAssertEqual(stream.answers, ["a sent", "b sent", "c sent"])
  }

  /// Cancelling one `next` gives up its attempt alone, and the next one counts against the cap.
  func testCancellingOneNext() {
    for maximumRetries in [0, 1] {
      let isImpatient = Signal<Void>()
      let stream = SteppedStream(
        interceptors: [
          TestAsyncInterceptor.stream { request, next in
            let response = try await next(request)
            await withTaskGroup(of: Void.self) { group in
              group.addTask {
                do {
                  for try await _ in response.results {}
                  XCTFail("the results went on")
                } catch {
                  XCTAssertTrue(error is CancellationError)
                }
              }
              await isImpatient.wait()
              group.cancelAll()
            }
            return try await next(request)
          }
        ],
        configure: { $0.retries.maximumRetries = maximumRetries }
      )
      stream.send("a")
      stream.server { $0.respondStream() }
      XCTAssertEqual(stream.results, [], "the interceptor has not returned")
      isImpatient.fire()
      stream.executor.runUntilIdle()
      XCTAssertEqual(stream.attempts[0].calls, ["write 8", "cancel"])
      if maximumRetries == 0 {
        XCTAssertEqual(stream.attempts.count, 1)
        stream.assertEnded(["end resource_exhausted"])
      } else {
        XCTAssertEqual(stream.attempts.count, 2)
        XCTAssertEqual(stream.written, ["a"])
        stream.server { scripted in
          scripted.respondStream()
          scripted.endStream()
        }
        stream.assertEnded(["headers", "end ok"])
      }
    }
  }

  // MARK: Errors

  func testMapErrors() {
    let maps: [(@Sendable (ConnectError) async throws -> ConnectError?, String)] = [
      ({ _ in ConnectError(code: .dataLoss) }, "end data_loss"),
      ({ _ in nil }, "end ok"),
      ({ $0 }, "end unavailable"),
      ({ _ in throw ConnectError(code: .aborted) }, "end aborted"),
      ({ _ in throw Failure() }, "end unknown"),
    ]
    for (map, expected) in maps {
      for code in [Code?.none, .unavailable] {
        let count = Box(0)
        let stream = SteppedStream(
          interceptors: [
            TestAsyncInterceptor.stream { request, next in
              try await next(request).mapErrors { error in
                _ = count.increment()
                return try await map(error)
              }
            }
          ]
        )
        stream.server { scripted in
          scripted.respondStream()
          scripted.sendMessage("\"a\"")
          scripted.endStream(code)
        }
        stream.assertEnded(["headers", "a", code == nil ? "end ok" : expected])
        XCTAssertEqual(count.value, code == nil ? 0 : 1)
      }
    }
  }

  // MARK: The end of the call

  /// Places at which an interceptor waits when the call ends.
  private static let waits:
    [(name: String, body: @Sendable (Events) -> TestAsyncInterceptor.Stream, seen: [String])] =
      [
        (
          "elsewhere, before next",
          { events in
            { request, next in
              await cancellation()
              events.add("cancelled \(Task.isCancelled)")
              return try await next(request)
            }
          },
          ["cancelled true"]
        ),
        (
          "elsewhere, behind next",
          { events in
            { request, next in
              let response = try await next(request)
              await cancellation()
              events.add("cancelled \(Task.isCancelled)")
              return response
            }
          },
          ["cancelled true"]
        ),
        (
          "for messages of the request",
          { events in
            { request, next in
              do {
                for try await message in request.messages { events.add(message.text) }
              } catch {
                events.add("\(type(of: error))")
              }
              return try await next(request)
            }
          },
          ["a", "CancellationError"]
        ),
        (
          "for results",
          { events in
            { request, next in
              let response = try await next(request)
              for try await result in response.results { events.add(result.short) }
              return StreamResponse(StreamAnswer(messages: ["ignored"]))
            }
          },
          ["END"]
        ),
      ]

  func testTheEndOfTheCallReachesItWhereverItWaits() {
    for (name, body, seen) in Self.waits {
      for code in [Code.deadlineExceeded, .canceled] {
        let events = Events()
        weak var leaked: Events?
        do {
          let token = Events()
          leaked = token
          let wait = body(events)
          let stream = SteppedStream(
            interceptors: [
              TestAsyncInterceptor.stream { request, next in
                defer { token.add("left") }
                return try await wait(request, next)
              }
            ],
            timeout: .seconds(10)
          )
          stream.send("a")
          if code == .canceled { stream.cancel() } else { stream.executor.advance(by: .seconds(10)) }
          stream.assertEnded(["end \(code)"], name)
          XCTAssertEqual(events.all, seen.map { $0 == "END" ? "end \(code)" : $0 }, name)
          XCTAssertEqual(token.all, ["left"], name)
          XCTAssertLessThanOrEqual(stream.attempts.count, 1, name)
        }
        XCTAssertNil(leaked, name)
      }
    }
  }
}
