import Connect
import ConnectTesting
import NIOCore
import XCTest

/// What a stream promises to its caller while it runs: order, bounded windows, and demand in both directions. How it ends
/// is in ``StreamCallEndTests``.
final class StreamCallTests: XCTestCase {
  /// Two of these fill the window of the transport.
  private static let large = String(repeating: "x", count: 40_000)

  /// Keeps request messages with a text until the test lets them go.
  private static func holding(
    _ text: String,
    _ held: Box<(@Sendable () -> Void)?>,
    inBytes: Bool = false
  ) -> InterceptorFactory {
    TestInterceptor.make { interceptor in
      if inBytes {
        interceptor.streamBytes.requestMessageFunction = { bytes, proceed in
          guard String(buffer: bytes) == "\"\(text)\"" else { return proceed(bytes) }
          held.value = { proceed(bytes) }
        }
      } else {
        interceptor.streamMessages.requestMessageFunction = { message, proceed in
          guard message.text == text else { return proceed(message) }
          held.value = { proceed(message) }
        }
      }
    }
  }

  // MARK: Order on the wire

  func testMessagesAndTheHalfCloseGoOutInOrder() {
    let stream = SteppedStream { $0.onFinish = StreamCallTests.echo }
    stream.send("a", "b", "c")
    stream.finish()
    XCTAssertEqual(stream.written, ["a", "b", "c"])
    XCTAssertEqual(stream.attempts[0].calls, ["write 8", "write 8", "write 8", "finish"])
    XCTAssertEqual(stream.answers, ["a sent", "b sent", "c sent"])
    stream.assertEnded(["headers", "a", "b", "c", "end ok"])
  }

  private static let echo: @Sendable (ScriptedStream) -> Void = { stream in
    stream.respondStream()
    for message in stream.sentMessages { stream.sendMessage(message) }
    stream.endStream()
  }

  /// The head goes out with the start of the call: a server may answer before it gets a message.
  func testTheHeadDoesNotWaitForAMessage() {
    let stream = SteppedStream()
    XCTAssertEqual(stream.attempts.count, 1)
    XCTAssertEqual(stream.attempts[0].calls, [])
    stream.server { $0.respondStream() }
    XCTAssertEqual(stream.results, ["headers"])
    stream.cancel()
  }

  func testTheHalfCloseGoesOutOnce() {
    let stream = SteppedStream { $0.onFinish = StreamCallTests.echo }
    stream.finish()
    stream.finish()
    XCTAssertEqual(stream.attempts[0].calls, ["finish"])
    stream.assertEnded(["headers", "end ok"])
  }

  func testTheHalfCloseWaitsBehindMessagesThatWait() {
    let stream = SteppedStream { $0.isWritable = false }
    stream.send(Self.large, Self.large, "a", "b")
    stream.finish()
    XCTAssertEqual(stream.attempts[0].calls, ["write 40007", "write 40007"])
    XCTAssertEqual(stream.answers, ["xxxxxxxx sent", "xxxxxxxx sent"])
    stream.server { $0.becomeWritable() }
    XCTAssertEqual(stream.attempts[0].calls.suffix(3), ["write 8", "write 8", "finish"])
    XCTAssertEqual(stream.written.suffix(2), ["a", "b"])
    XCTAssertEqual(stream.answers.suffix(2), ["a sent", "b sent"])
    stream.cancel()
  }

  /// A hook that keeps a message holds back what is behind it, and the half-close with that.
  func testTheHalfCloseWaitsForAHook() {
    for inBytes in [false, true] {
      let held = Box<(@Sendable () -> Void)?>(nil)
      let stream = SteppedStream(interceptors: [Self.holding("b", held, inBytes: inBytes)]) {
        $0.onFinish = StreamCallTests.echo
      }
      stream.send("a", "b", "c")
      stream.finish()
      XCTAssertEqual(stream.written, ["a"], "bytes: \(inBytes)")
      XCTAssertFalse(stream.attempts[0].isFinished)
      held.exchange(nil)?()
      stream.executor.runUntilIdle()
      XCTAssertEqual(stream.written, ["a", "b", "c"], "bytes: \(inBytes)")
      stream.assertEnded(["headers", "a", "b", "c", "end ok"])
    }
  }

  /// A message is accepted when hooks that proceed at once have passed it on: cancelling then does not take it back.
  func testAMessageIsAcceptedBehindTheHooks() {
    let events = Events()
    let stream = SteppedStream(interceptors: [
      TestInterceptor.make { interceptor in
        interceptor.streamMessages.requestMessageFunction = { message, proceed in
          events.add("hook \(message.text)")
          proceed(message)
        }
      }
    ])
    let handle = stream.handle
    handle.send(Text("a")) { error in
      events.add(error.map { "\($0.code)" } ?? "accepted")
      handle.cancel()
    }
    stream.executor.runUntilIdle()
    XCTAssertEqual(events.all, ["hook a", "accepted"])
    XCTAssertEqual(stream.written, ["a"])
    stream.assertEnded(["end canceled"])
  }

  /// What a callback sends goes out behind what was sent before.
  func testSendingFromWithinResultsKeepsTheOrder() {
    let handle = Box<StreamHandle<Text, Text>?>(nil)
    let stream = SteppedStream(onResult: { result in
      if result == "headers" { handle.value?.send("b") }
      if result == "1" {
        handle.value?.send("c")
        handle.value?.finish()
        handle.value?.send("late")
      }
    })
    handle.value = stream.handle
    stream.send("a")
    stream.server { scripted in
      scripted.respondStream()
      scripted.sendMessage("\"1\"")
    }
    XCTAssertEqual(stream.written, ["a", "b", "c"])
    XCTAssertEqual(stream.attempts[0].calls.last, "finish")
    stream.server { $0.endStream() }
    stream.assertEnded(["headers", "1", "end ok"])
    handle.value = nil
  }

  // MARK: Bounded windows

  /// Hooks hold so many messages back as the limit says, on both levels, and the wire sees them in order.
  func testTheWindowsOfTwoHooksAddUp() {
    let bytes = Box<(@Sendable () -> Void)?>(nil)
    let messages = Box<(@Sendable () -> Void)?>(nil)
    let stream = SteppedStream(
      interceptors: [Self.holding("0", bytes, inBytes: true), Self.holding("9", messages)],
      configure: { $0.limits.maximumWaitingValues = 4 }
    )
    for index in 0..<30 { stream.send("\(index)") }
    // The byte hook holds 0 to 3. What the message hook has passed waits for it, as does the caller.
    let sentCount = stream.answers.count
    XCTAssertTrue((4...12).contains(sentCount), "\(sentCount)")
    XCTAssertEqual(stream.written, [])
    bytes.exchange(nil)?()
    stream.executor.runUntilIdle()
    XCTAssertEqual(stream.written, (0..<9).map { "\($0)" })
    XCTAssertEqual(stream.answers.count, 13, "the message hook holds 9 to 12")
    messages.exchange(nil)?()
    stream.executor.runUntilIdle()
    XCTAssertEqual(stream.written, (0..<30).map { "\($0)" })
    XCTAssertEqual(stream.answers, (0..<30).map { "\($0) sent" })
    stream.cancel()
  }

  func testTheWindowOfTheTransportOpensStepByStep() {
    let stream = SteppedStream { $0.isWritable = false }
    for _ in 0..<7 { stream.send(Self.large) }
    for count in [2, 4, 6, 7] {
      XCTAssertEqual(stream.attempts[0].calls.count, count)
      XCTAssertEqual(stream.answers.count, count)
      stream.server { $0.handler?.streamDidBecomeWritable() }
    }
    stream.cancel()
  }

  // MARK: Demand for results

  func testNothingIsGivenThatWasNotAskedFor() {
    let stream = SteppedStream(demand: 0)
    stream.server { $0.respondStream() }
    stream.reply("a", "b")
    XCTAssertEqual(stream.results, [])
    stream.request(1)
    XCTAssertEqual(stream.results, ["headers"])
    stream.request(2)
    XCTAssertEqual(stream.results, ["headers", "a", "b"])
    stream.request(2)
    stream.reply("c")
    XCTAssertEqual(stream.results, ["headers", "a", "b", "c"], "demand is kept until something comes")
    stream.server { $0.endStream() }
    stream.assertEnded(["headers", "a", "b", "c", "end ok"])
  }

  /// The end is a result like others: it needs to be asked for, unless the caller itself ends the call.
  func testTheEndIsAskedForToo() {
    for code in [Code?.none, .aborted] {
      let stream = SteppedStream(demand: 1)
      stream.server { scripted in
        scripted.respondStream()
        scripted.endStream(code)
      }
      XCTAssertEqual(stream.results, ["headers"])
      stream.request(1)
      stream.assertEnded(["headers", "end \(code ?? .ok)"])
    }
    let failed = SteppedStream(demand: 0)
    failed.server { $0.fail(ConnectError(code: .unavailable)) }
    XCTAssertEqual(failed.results, [])
    failed.request(1)
    failed.assertEnded(["end unavailable"])
    let cancelled = SteppedStream(demand: 0)
    cancelled.cancel()
    cancelled.assertEnded(["end canceled"])
  }

  /// Bytes of messages that nobody has asked for stay with the transport, which can hold the peer back.
  func testDemandReachesTheTransport() {
    let text = String(repeating: "y", count: 20_000)
    let stream = SteppedStream(demand: 1)
    stream.server { $0.respondStream() }
    stream.reply(text, text, text)
    let size = text.utf8.count + 7
    for count in 0...3 {
      if count > 0 { stream.request(1) }
      XCTAssertEqual(stream.results.count, 1 + count)
      let unconsumed = stream.attempts[0].unconsumed
      // Not more than was taken is given back; what is given back may lag behind by a step.
      XCTAssertGreaterThanOrEqual(unconsumed, (3 - count) * size)
      XCTAssertLessThan(unconsumed, (3 - count) * size + 16 * 1024, "\(count)")
    }
    stream.request(1)
    XCTAssertEqual(stream.attempts[0].unconsumed, 0, "whoever waits has taken all there is")
    stream.cancel()
  }

  /// A message that a hook drops does not count as one that was asked for.
  func testDroppedMessagesAreNotCounted() {
    for inBytes in [false, true] {
      let stream = SteppedStream(
        interceptors: [
          TestInterceptor.make { interceptor in
            if inBytes {
              interceptor.streamBytes.streamResultFunction = { result, proceed in
                if result.short == "\"odd\"" { proceed.drop() } else { proceed(result) }
              }
            } else {
              interceptor.streamMessages.streamResultFunction = { result, proceed in
                if result.short == "odd" { proceed.drop() } else { proceed(result) }
              }
            }
          }
        ],
        demand: 2
      )
      stream.server { $0.respondStream() }
      stream.reply("odd", "odd", "a", "odd", "b")
      XCTAssertEqual(stream.results, ["headers", "a"], "bytes: \(inBytes)")
      stream.request(1)
      XCTAssertEqual(stream.results, ["headers", "a", "b"])
      stream.cancel()
    }
  }

  func testAskingFromWithinAResult() {
    let handle = Box<StreamHandle<Text, Text>?>(nil)
    let stream = SteppedStream(demand: 1, onResult: { _ in handle.value?.request(1) })
    handle.value = stream.handle
    stream.server { scripted in
      scripted.respondStream()
      for index in 0..<1000 { scripted.sendMessage("\"\(index)\"") }
      scripted.endStream()
    }
    stream.assertEnded(["headers"] + (0..<1000).map { "\($0)" } + ["end ok"])
    handle.value = nil
  }

  // MARK: Headers

  /// Headers come once and first, whatever the pieces in which a response arrives.
  func testHeadersComeOnceAndFirst() {
    var body = ByteBuffer()
    for (flags, text) in [(UInt8(0), "\"a\""), (0, "\"b\""), (2, "{}")] {
      body.writeInteger(flags)
      body.writeInteger(UInt32(text.utf8.count))
      body.writeString(text)
    }
    for size in 1...body.readableBytes {
      let stream = SteppedStream()
      stream.server { $0.respondStream(headers: ["x-a": ["1"]]) }
      XCTAssertEqual(stream.results, ["headers"])
      var rest = body
      while rest.readableBytes > 0 {
        let piece = rest.readSlice(length: min(size, rest.readableBytes)) ?? ByteBuffer()
        stream.server { $0.send(piece) }
      }
      stream.server { $0.end() }
      stream.assertEnded(["headers", "a", "b", "end ok"], "pieces of \(size)")
    }
  }

  /// Those of an attempt that was retried do not show.
  func testHeadersOfTheLastAttemptAlone() {
    let seen = Box<[Headers]>([])
    let retrying: InterceptorFactory = { _ in
      var interceptor = TestInterceptor()
      var held: (@Sendable () -> Void)?
      interceptor.streamMessages.streamResultFunction = { result, proceed in
        switch result {
        case .headers:
          held = { proceed(result) }
        case .complete(_, .some, _):
          held = nil
          proceed.retry()
        default:
          held?()
          held = nil
          proceed(result)
        }
      }
      return interceptor
    }
    let watching = TestInterceptor.make { interceptor in
      interceptor.streamMessages.streamResultFunction = { result, proceed in
        if case .headers(let headers) = result { seen.value = seen.value + [headers] }
        proceed(result)
      }
    }
    let stream = SteppedStream(interceptors: [watching, retrying])
    for attempt in 1...3 {
      stream.server { scripted in
        scripted.respondStream(headers: ["x-attempt": ["\(attempt)"]])
        if attempt < 3 { scripted.endStream(.unavailable) }
      }
    }
    stream.reply("a")
    stream.server { $0.endStream() }
    stream.assertEnded(["headers", "a", "end ok"])
    XCTAssertEqual(seen.value.map { $0["x-attempt"] }, [["3"]])
  }
}
