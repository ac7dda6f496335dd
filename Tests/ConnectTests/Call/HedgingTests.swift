import Connect
import ConnectTesting
import NIOCore
import TestSupport
import XCTest

/// Hedging: which attempts start, and which one decides the outcome.
final class HedgingTests: XCTestCase {
  // MARK: The first good answer wins

  func testASlowAttemptIsOvertaken() async {
    let call = HedgedCall()
    call.advance(by: .milliseconds(999))
    XCTAssertEqual(call.attempts.count, 1)
    call.advance(by: .milliseconds(1))
    XCTAssertEqual(call.attempts.count, 2)
    call.attempt(2) { $0.reply("\"second\"") }
    let response = await call.outcome()
    XCTAssertEqual(response.message, "second")
    XCTAssertEqual(call.cancelled, [1])
    XCTAssertEqual(call.attempts.count, 2)
  }

  func testTheFirstAttemptMayStillWin() async {
    let call = HedgedCall()
    call.advance(by: .seconds(2))
    call.attempt(3) { $0.respond(headers: ["content-type": ["application/json"]]) }
    call.attempt(1) { $0.reply("\"first\"", headers: ["x-server": ["a"]]) }
    let response = await call.outcome()
    XCTAssertEqual(response.message, "first")
    XCTAssertEqual(response.headers["x-server"], ["a"])
    XCTAssertEqual(call.cancelled, [2, 3])
  }

  func testAnAnswerInTimeStartsNoOther() async {
    let call = HedgedCall()
    call.attempt(1) { $0.reply("\"x\"") }
    let response = await call.outcome()
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(call.attempts.count, 1)
    XCTAssertEqual(call.cancelled, [])
  }

  /// What has arrived of one attempt is not taken for a part of another.
  func testResponsesAreNotMixed() async {
    let call = HedgedCall()
    call.advance(by: .seconds(1))
    let parts = [ByteBuffer(string: "\"one"), ByteBuffer(string: "\"two"), ByteBuffer(string: "!\"")]
    call.attempt(1) {
      $0.respond(headers: ["content-type": ["application/json"], "x-attempt": ["1"]])
      $0.send(parts[0])
    }
    call.attempt(2) {
      $0.respond(headers: ["content-type": ["application/json"], "x-attempt": ["2"]])
      $0.send(parts[1])
    }
    call.attempt(1) { $0.send(parts[2]) }
    call.attempt(2) {
      $0.send(parts[2])
      $0.end()
    }
    let response = await call.outcome()
    XCTAssertEqual(response.message, "two!")
    XCTAssertEqual(response.headers["x-attempt"], ["2"])
    XCTAssertEqual(call.cancelled, [1])
  }

  // MARK: Starting

  func testNoMoreThanTheMaximum() async {
    for maximum in 2...5 {
      let call = HedgedCall(HedgingPolicy(maximumAttempts: maximum, delay: .seconds(1)))
      for count in 1...maximum {
        XCTAssertEqual(call.attempts.count, count)
        call.advance(by: .seconds(1))
      }
      call.advance(by: .seconds(100))
      XCTAssertEqual(call.attempts.count, maximum)
      XCTAssertEqual(call.transport.virtualExecutor.scheduled, [])
      call.attempt(maximum) { $0.reply("\"x\"") }
      let response = await call.outcome()
      XCTAssertEqual(response.message, "x")
      XCTAssertEqual(call.cancelled, Array(1..<maximum))
    }
  }

  /// As in gRPC, however many are wanted.
  func testNeverMoreThanFiveAttempts() async {
    for maximum in [5, 6, 5000, Int.max] {
      let call = HedgedCall(HedgingPolicy(maximumAttempts: maximum, delay: .zero))
      call.advance(by: .seconds(100))
      XCTAssertEqual(call.attempts.count, 5)
      call.attempt(5) { $0.reply("\"x\"") }
      let response = await call.outcome()
      XCTAssertEqual(response.message, "x")
    }
  }

  func testWithoutDelayAllStartAtOnce() async {
    let call = HedgedCall(HedgingPolicy(maximumAttempts: 3, delay: .zero))
    call.advance(by: .zero)
    XCTAssertEqual(call.attempts.count, 3)
    call.attempt(2) { $0.reply("\"x\"") }
    let response = await call.outcome()
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(call.cancelled, [1, 3])
  }

  func testEachAttemptSendsTheSameAndAnnouncesThoseBefore() async {
    // With trailers, the body does not go with the head.
    for trailers in [Headers(), ["x-trailer": ["t"]]] {
      let adding = TestInterceptor.make { interceptor in
        interceptor.unaryBytes.requestFunction = { request, proceed in
          var request = request
          request.headers["x-header"] = ["h"]
          request.trailers = trailers
          proceed(.success(request))
        }
      }
      let call = HedgedCall(interceptors: [adding], timeout: .seconds(10))
      call.advance(by: .seconds(2))
      XCTAssertEqual(call.attempts.map(\.sentMessage), ["\"x\"", "\"x\"", "\"x\""])
      XCTAssertEqual(call.attempts.map(\.isFinished), [true, true, true])
      XCTAssertEqual(call.attempts.map { $0.request.headers["x-header"] }, [["h"], ["h"], ["h"]])
      XCTAssertEqual(
        call.attempts.map { $0.request.headers["grpc-previous-rpc-attempts"] },
        [[], ["1"], ["2"]]
      )
      XCTAssertEqual(
        call.attempts.map { $0.request.headers["connect-timeout-ms"] },
        [["10000"], ["9000"], ["8000"]]
      )
      call.attempt(3) { $0.reply("\"x\"") }
      let response = await call.outcome()
      XCTAssertEqual(response.message, "x")
    }
  }

  func testTheMessageIsEncodedOnceAndGoesAsGET() async {
    let codec = CountingCodec()
    let call = HedgedCall {
      $0.codec = codec
      $0.unaryGET = .alwaysEnabled
    }
    call.advance(by: .seconds(2))
    XCTAssertEqual(codec.encodes, 1)
    XCTAssertEqual(call.attempts.map(\.request.method), [.get, .get, .get])
    XCTAssertEqual(Set(call.attempts.map(\.request.target)).count, 1)
    call.handle.cancel()
    let response = await call.outcome()
    XCTAssertEqual(response.code, .canceled)
  }

  // MARK: Failures

  func testAFailureStartsTheNextAtOnceAndShiftsTheSchedule() async {
    let call = HedgedCall()
    call.advance(by: .milliseconds(400))
    call.attempt(1) { $0.reply(.unavailable) }
    XCTAssertEqual(call.attempts.count, 2)
    XCTAssertEqual(call.transport.virtualExecutor.scheduled, [.milliseconds(1400)])
    call.advance(by: .seconds(1))
    XCTAssertEqual(call.attempts.count, 3)
    call.attempt(2) { $0.reply("\"x\"") }
    let response = await call.outcome()
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(call.cancelled, [3])
  }

  func testAnErrorWithAnotherCodeIsTheOutcome() async {
    let call = HedgedCall()
    call.advance(by: .seconds(1))
    call.attempt(2) { $0.reply(.notFound, "there is none", status: 404) }
    let response = await call.outcome()
    XCTAssertEqual(response.code, .notFound)
    XCTAssertEqual(response.error?.message, "there is none")
    XCTAssertEqual(response.error?.httpStatus, 404)
    XCTAssertEqual(call.cancelled, [1])
  }

  func testWhenAllFailTheLastErrorIsTheOutcome() async {
    let count = Box(0)
    let call = HedgedCall(script: { $0.reply(.unavailable, "attempt \(count.increment())") })
    let response = await call.outcome()
    XCTAssertEqual(response.error?.message, "attempt 3")
    XCTAssertEqual(call.attempts.count, 3)
    XCTAssertEqual(call.cancelled, [])
  }

  func testAFailedAttemptWaitsForTheOthers() async {
    let call = HedgedCall()
    call.advance(by: .seconds(2))
    call.attempt(3) { $0.reply(.unavailable) }
    call.attempt(1) { $0.fail(ConnectError(code: .unavailable, message: "lost")) }
    XCTAssertFalse(call.isOver)
    call.attempt(2) { $0.reply("\"x\"") }
    let response = await call.outcome()
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(call.cancelled, [])
  }

  func testWhichCodesAreNotFinal() async {
    for code in [Code.aborted, .unavailable] {
      let call = HedgedCall(HedgingPolicy(maximumAttempts: 2, delay: .seconds(1), codes: [.aborted]))
      call.attempt(1) { $0.reply(code) }
      XCTAssertEqual(call.isOver, code == .unavailable)
      if code == .aborted { call.attempt(2) { $0.reply(.aborted) } }
      let response = await call.outcome()
      XCTAssertEqual(response.code, code)
    }
  }

  /// Nothing was sent, so that there is nothing to send again.
  func testARequestThatCannotBeSent() async {
    let policy = HedgingPolicy(maximumAttempts: 3, delay: .seconds(1), codes: [.resourceExhausted])
    let call = HedgedCall(policy) { $0.limits.maximumSentMessageSize = 2 }
    let response = await call.outcome()
    XCTAssertEqual(response.code, .resourceExhausted)
    XCTAssertEqual(call.attempts.count, 0)
  }

  func testAResponseThatBreaksTheProtocolIsGivenUp() async {
    let policy = HedgingPolicy(maximumAttempts: 2, delay: .seconds(1), codes: [.unknown])
    let call = HedgedCall(policy)
    call.attempt(1) {
      $0.respond(headers: ["content-type": ["text/html"]])
      $0.send(ByteBuffer(string: "<html>"))
      $0.end()
    }
    call.attempt(2) { $0.reply("\"x\"") }
    let response = await call.outcome()
    XCTAssertEqual(response.message, "x")
  }

  // MARK: Deadline and cancellation

  func testTheDeadlineEndsAllAttempts() async {
    let call = HedgedCall(timeout: .milliseconds(1500))
    call.advance(by: .milliseconds(1500))
    let response = await call.outcome()
    XCTAssertEqual(response.code, .deadlineExceeded)
    XCTAssertEqual(call.attempts.count, 2)
    XCTAssertEqual(call.cancelled, [1, 2])
  }

  func testNoAttemptStartsWhenTheDeadlinePasses() async {
    let call = HedgedCall(timeout: .seconds(1))
    XCTAssertEqual(call.transport.virtualExecutor.scheduled, [.seconds(1)], "the deadline alone")
    call.advance(by: .seconds(1))
    let response = await call.outcome()
    XCTAssertEqual(response.code, .deadlineExceeded)
    XCTAssertEqual(call.attempts.count, 1)
  }

  /// The executor was busy, so that the next attempt is due when the deadline has passed.
  func testNoAttemptStartsBehindTheDeadline() async {
    let call = HedgedCall(timeout: .milliseconds(1500))
    call.transport.virtualExecutor.passUnnoticed(.seconds(2))
    call.advance(by: .zero)
    let response = await call.outcome()
    XCTAssertEqual(response.code, .deadlineExceeded)
    XCTAssertEqual(call.attempts.count, 1)
    XCTAssertEqual(call.cancelled, [1])
  }

  func testCancellingEndsAllAttempts() async {
    let call = HedgedCall()
    call.advance(by: .seconds(2))
    call.handle.cancel()
    let response = await call.outcome()
    XCTAssertEqual(response.code, .canceled)
    XCTAssertEqual(call.cancelled, [1, 2, 3])
  }

  // MARK: Transparent retries

  /// What the server certainly did not process is sent again, once for each attempt, and is no attempt of its own.
  func testEachAttemptIsRetriedTransparently() async {
    let call = HedgedCall(HedgingPolicy(maximumAttempts: 2, delay: .seconds(1)), timeout: .seconds(10))
    call.advance(by: .seconds(1))
    call.attempt(1) { $0.fail(ConnectError(code: .unavailable), isUnprocessed: true) }
    call.attempt(2) { $0.fail(ConnectError(code: .unavailable), isUnprocessed: true) }
    XCTAssertEqual(call.attempts.count, 4)
    XCTAssertEqual(
      call.attempts.map { $0.request.headers["grpc-previous-rpc-attempts"] },
      [[], ["1"], [], ["1"]]
    )
    call.attempt(4) { $0.fail(ConnectError(code: .unavailable), isUnprocessed: true) }
    XCTAssertFalse(call.isOver)
    call.attempt(3) { $0.fail(ConnectError(code: .unavailable, message: "last"), isUnprocessed: true) }
    let response = await call.outcome()
    XCTAssertEqual(response.error?.message, "last")
    XCTAssertEqual(call.attempts.count, 4)
  }

  /// Each hedge has a transparent retry, also if it takes the memory of an attempt that has ended.
  func testAHedgeIsRetriedTransparentlyAfterTheEndOfTheFirstAttempt() async {
    let refuse: (ScriptedStream) -> Void = { $0.fail(ConnectError(code: .unavailable), isUnprocessed: true) }
    for _ in 0..<20 {
      let call = HedgedCall(HedgingPolicy(maximumAttempts: 5, delay: .seconds(1)))
      call.attempt(1, refuse)
      call.attempt(2, refuse)
      for hedge in 1...4 {
        // The attempt before has ended, and this one runs.
        XCTAssertEqual(call.attempts.count, 2 * hedge + 1)
        call.attempt(2 * hedge + 1, refuse)
        XCTAssertEqual(call.attempts.count, 2 * hedge + 2, "hedge \(hedge) was not sent again")
        call.attempt(2 * hedge + 2, refuse)
      }
      let response = await call.outcome()
      XCTAssertEqual(response.code, .unavailable)
      XCTAssertEqual(
        call.attempts.map { $0.request.headers["grpc-previous-rpc-attempts"] },
        [[], [], ["1"], ["1"], ["2"], ["2"], ["3"], ["3"], ["4"], ["4"]]
      )
    }
  }

  // MARK: Many calls

  /// Whatever happens to its attempts, a call makes no more than it may, ends once, and leaves nothing behind.
  func testManyCallsAtOnce() async {
    var generator = SeededGenerator()
    let executor = VirtualExecutor(runsTasks: false)
    let seeds = (0..<300).map { _ in UInt64.random(in: 0...UInt64.max, using: &generator) }
    let random = Box(seeds)
    let transport = ScriptedTransport(
      { stream in
        let roll = random.value[Int(stream.sentMessage.filter(\.isNumber)) ?? 0]
        let previous = Int(stream.request.headers.first("grpc-previous-rpc-attempts") ?? "0") ?? 0
        let kind = (roll >> (UInt64(previous) * 8)) % 5
        _ = executor.schedule(after: .milliseconds(Int(roll >> UInt64(previous * 8 + 4)) % 3000)) {
          switch kind {
          case 0: stream.reply(stream.sentMessage)
          case 1: stream.reply(.unavailable)
          case 2: stream.reply(.notFound)
          case 3: stream.fail(ConnectError(code: .unavailable))
          default: break
          }
        }
      },
      executor: executor
    )
    let client = ProtocolClient.scripted(transport, timeout: .seconds(5)) {
      $0.hedging = { _ in HedgingPolicy(maximumAttempts: 3, delay: .milliseconds(700)) }
    }
    let outcomes = Box([Int](repeating: 0, count: seeds.count))
    for index in seeds.indices {
      let handle = client.unary(.read, Text("\(index)")) { response in
        XCTAssertTrue([.ok, .unavailable, .notFound, .deadlineExceeded, .canceled].contains(response.code))
        if let message = response.message { XCTAssertEqual(message, Text("\(index)")) }
        var counts = outcomes.value
        counts[index] += 1
        outcomes.value = counts
      }
      if seeds[index] % 11 == 0 { _ = executor.schedule(after: .milliseconds(900)) { handle.cancel() } }
    }
    executor.advance(by: .seconds(10))
    XCTAssertEqual(outcomes.value, [Int](repeating: 1, count: seeds.count))
    XCTAssertEqual(executor.scheduled, [])
    let attempts = Dictionary(grouping: transport.streams, by: \.sentMessage)
    XCTAssertEqual(attempts.count, seeds.count)
    XCTAssertEqual(attempts.values.map(\.count).max(), 3)
    XCTAssertTrue(attempts.values.allSatisfy { $0.allSatisfy(\.isOver) })
  }
}
