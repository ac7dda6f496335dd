import Connect
import ConnectTesting
import NIOCore
import XCTest

/// What flows through an async interceptor of streams: request messages as it reads them, demand in both directions, and
/// task-local values.
final class AsyncStreamFlowTests: XCTestCase {
  @TaskLocal private static var path = ""

  // MARK: Request messages

  /// Nothing goes out before `next` is called; what it was given goes out then.
  func testReadingAllMessagesFirst() {
    let stream = SteppedStream(
      interceptors: [
        TestAsyncInterceptor.stream { request, next in
          var texts: [String] = []
          for try await message in request.messages { texts.append(message.text) }
          return try await next(
            StreamRequest(head: request.head, messages: PulledSequence([Text(texts.joined(separator: "+"))]))
          )
        }
      ]
    ) {
      $0.onFinish = {
        $0.respondStream(); $0.endStream()
      }
    }
    stream.send("a", "b", "c")
    XCTAssertEqual(stream.attempts.count, 0)
    XCTAssertEqual(stream.answers, ["a sent", "b sent", "c sent"])
    stream.finish()
    XCTAssertEqual(stream.written, ["a+b+c"])
    stream.assertEnded(["headers", "end ok"])
  }

  /// Messages that were read can be read again, from the first on.
  func testReadingMessagesAgain() {
    let seen = Events()
    let stream = SteppedStream(
      interceptors: [
        TestAsyncInterceptor.stream { request, next in
          for try await message in request.messages {
            seen.add(message.text)
            if message == "b" { break }
          }
          return try await next(request)
        }
      ]
    )
    stream.send("a")
    XCTAssertEqual(stream.attempts.count, 0)
    stream.send("b", "c")
    XCTAssertEqual(seen.all, ["a", "b"])
    XCTAssertEqual(stream.written, ["a", "b", "c"])
    stream.send("d")
    XCTAssertEqual(stream.written, ["a", "b", "c", "d"])
    stream.cancel()
  }

  /// Of two who read, the later one goes on.
  func testOfTwoReadersTheLaterOneGoesOn() {
    let first = Events()
    let second = Events()
    let stream = SteppedStream(
      interceptors: [
        TestAsyncInterceptor.stream { request, next in
          await withTaskGroup(of: Void.self) { group in
            for events in [first, second] {
              group.addTask {
                do {
                  for try await message in request.messages { events.add(message.text) }
                  events.add("end")
                } catch {
                  events.add("\(type(of: error))")
                }
              }
            }
          }
          return StreamResponse(StreamAnswer(messages: []))
        }
      ]
    )
    stream.send("a", "b")
    stream.finish()
    XCTAssertEqual(first.all, ["CancellationError"])
    XCTAssertEqual(second.all, ["a", "b", "end"])
    stream.assertEnded(["headers", "end ok"])
  }

  /// It may leave messages out and add others; a retry inside of another one sends what that one has made of them.
  func testAnotherNumberOfMessages() {
    let stream = SteppedStream(
      interceptors: [
        TestAsyncInterceptor.stream { request, next in
          let kept = PulledSequence(request.messages.filter { $0 != "b" })
          return try await next(
            StreamRequest(head: request.head, messages: kept.followed(by: PulledSequence(["added"])))
          )
        },
        TestAsyncInterceptor.stream { request, next in
          try await next(request.map { Text($0.text + "!") })
            .recoverErrors { _ in try await next(request.map { Text($0.text + "?") }) }
        },
      ]
    )
    stream.send("a", "b", "c")
    stream.finish()
    XCTAssertEqual(stream.written, ["a!", "c!", "added!"])
    stream.server { $0.fail(ConnectError(code: .unavailable)) }
    XCTAssertEqual(stream.attempts.count, 2)
    XCTAssertEqual(stream.written, ["a?", "c?", "added?"])
    XCTAssertEqual(stream.attempts[1].calls.last, "finish")
    stream.server { scripted in
      scripted.respondStream()
      scripted.endStream()
    }
    stream.assertEnded(["headers", "end ok"])
  }

  /// Of a stream that an outer hook retries, the body begins afresh and reads all messages.
  func testARetryOutsideReadsAllMessagesAgain() {
    let seen = Events()
    let retrying = TestInterceptor.make { interceptor in
      interceptor.streamMessages.streamResultFunction = { result, proceed in
        if result.short == "end unavailable" { proceed.retry() } else { proceed(result) }
      }
    }
    let stream = SteppedStream(
      interceptors: [
        retrying,
        TestAsyncInterceptor.stream { request, next in
          seen.add("called")
          return try await next(
            request.map { message in
              seen.add(message.text)
              return message
            }
          )
        },
      ]
    )
    stream.send("a", "b")
    stream.server { $0.fail(ConnectError(code: .unavailable)) }
    stream.send("c")
    XCTAssertEqual(seen.all, ["called", "a", "b", "called", "a", "b", "c"])
    XCTAssertEqual(stream.attempts.map(\.sentMessages.count), [2, 3])
    stream.cancel()
    stream.assertEnded(["end canceled"])
  }

  // MARK: Demand

  /// Who does not read holds back the caller; nothing is lost or reordered for that.
  func testMessagesThatNobodyReadsHoldBackTheCaller() {
    let goOn = Signal<Void>()
    let stream = SteppedStream(
      interceptors: [
        TestAsyncInterceptor.stream { request, next in
          await goOn.wait()
          return try await next(request)
        }
      ]
    )
    for index in 0..<100 { stream.send("\(index)") }
    let count = stream.answers.count
    XCTAssertTrue((1...32).contains(count), "\(count)")
    XCTAssertEqual(stream.attempts.count, 0)
    goOn.fire()
    stream.executor.runUntilIdle()
    XCTAssertEqual(stream.written, (0..<100).map { "\($0)" })
    XCTAssertEqual(stream.answers, (0..<100).map { "\($0) sent" })
    stream.cancel()
  }

  /// The window of the transport holds back those who send through two interceptors.
  func testTheWindowOfTheTransportReachesTheCaller() {
    let passing = TestAsyncInterceptor.stream { request, next in try await next(request) }
    let text = String(repeating: "x", count: 40_000)
    let stream = SteppedStream(interceptors: [passing, passing]) { $0.isWritable = false }
    for _ in 0..<100 { stream.send(text) }
    XCTAssertEqual(stream.attempts[0].calls.count, 2)
    XCTAssertLessThan(stream.answers.count, 64)
    stream.server { $0.becomeWritable() }
    XCTAssertEqual(stream.attempts[0].calls.count, 100)
    XCTAssertEqual(stream.answers.count, 100)
    stream.cancel()
  }

  /// A result is pulled for each that was asked for, and more only in place of those that are left out.
  func testDemandPassesThrough() {
    let pulled = Events()
    let stream = SteppedStream(
      interceptors: [
        TestAsyncInterceptor.stream { request, next in
          let results = try await next(request).results.mapped { result in
            pulled.add(result.short)
            return result
          }
          return StreamResponse(results: PulledSequence(results.filter { $0.short != "odd" }))
        }
      ],
      demand: 0
    )
    stream.server { $0.respondStream() }
    stream.reply("a", "odd", "odd", "b", "c")
    XCTAssertEqual(pulled.all, [])
    for (pulledCount, result) in [(1, "headers"), (2, "a"), (5, "b"), (6, "c")] {
      stream.request(1)
      XCTAssertEqual(pulled.all.count, pulledCount)
      XCTAssertEqual(stream.results.last, result)
    }
    stream.cancel()
    stream.assertEnded(["headers", "a", "b", "c", "end canceled"])
  }

  // MARK: Task-local values

  /// Each sees what those outside have bound around `next`, in each attempt.
  func testTaskLocalValues() {
    let seen = Events()
    let stage: @Sendable (String) -> InterceptorFactory = { name in
      TestAsyncInterceptor.stream { request, next in
        let outer = Self.path
        seen.add("\(name) in \(outer)")
        let attempt: @Sendable (String) async throws -> StreamResponse<Text> = { mark in
          try await Self.$path.withValue(outer + name + mark) { try await next(request) }
        }
        guard name == "B" else { return try await attempt("") }
        return try await attempt("1").recoverErrors { _ in try await attempt("2") }
      }
    }
    let count = Box(0)
    let stream = Self.$path.withValue("caller:") {
      SteppedStream(interceptors: ["A", "B", "C", "D"].map(stage)) { scripted in
        if count.increment() == 1 { return scripted.fail(ConnectError(code: .unavailable)) }
        scripted.respondStream()
        scripted.endStream()
      }
    }
    stream.assertEnded(["headers", "end ok"])
    XCTAssertEqual(
      seen.all,
      [
        "A in caller:", "B in caller:A", "C in caller:AB1", "D in caller:AB1C", "C in caller:AB2",
        "D in caller:AB2C",
      ]
    )
  }
}
