import NIOCore
import XCTest

@testable import Connect

/// Retries: what a new attempt sends, who still waits, and which retries count.
final class PipelineOrderRetryTests: XCTestCase {
  /// A driver whose stage asks for another attempt at the end of each.
  private static func retrying(
    at stage: Int,
    _ messageStages: Int,
    _ byteStages: Int = 0,
    with head: RequestPart? = nil,
    maximumReplayBytes: Int = 1000
  ) -> OrderDriver {
    let driver = OrderDriver(messageStages, byteStages, maximumReplayBytes: maximumReplayBytes)
    driver.onResult = { index, result in
      index == stage && result.error != nil ? .does(.retry(head, after: .zero)) : .none
    }
    return driver
  }

  func testAllThatWasSentIsSentAgain() {
    for (head, name) in [(nil, "first"), (RequestPart.head("other"), "other")] {
      let driver = Self.retrying(at: 1, 3, with: head)
      driver.start()
      driver.send(.text("a"), .text("b"))
      driver.receive(.failed(.unavailable))
      XCTAssertTrue(driver.order.isWaitingToRetry)
      XCTAssertFalse(driver.wantsResult, "there is no attempt")
      XCTAssertFalse(driver.send(.text("c")), "it would overtake what is sent again")
      XCTAssertTrue(driver.retryIsDue())
      XCTAssertFalse(driver.order.isWaitingToRetry)
      driver.send(.text("c"), .end)
      XCTAssertEqual(driver.wire, ["first", "a", "b", name, "a", "b", "c", "end"])
      driver.receive(.failed(.unavailable))
      XCTAssertTrue(driver.retryIsDue())
      XCTAssertEqual(driver.wire.suffix(5), [name, "a", "b", "c", "end"])
      driver.receive(.headers(Headers()), .text("r"), .end)
      XCTAssertEqual(driver.delivered, ["headers", "r", "end"])
    }
  }

  /// What hooks have made of messages is not sent again: the messages of the caller are.
  func testHooksSeeMessagesAgain() {
    let driver = Self.retrying(at: 0, 2)
    let attempts = Box(0)
    driver.onRequest = { index, part in
      guard index == 1 else { return .none }
      if part.head != nil { _ = attempts.increment() }
      guard case .message = part else { return .does(.send(part)) }
      return .does(.send(.text("\(part.name)\(attempts.value)")))
    }
    driver.start()
    driver.send(.text("a"))
    driver.receive(.failed(.unavailable))
    driver.retryIsDue()
    XCTAssertEqual(driver.wire, ["first", "a1", "first", "a2"])
  }

  func testMessagesThatAreSentAgainWaitForRoom() {
    let driver = Self.retrying(at: 0, 1)
    driver.start()
    driver.send(.text("a"), .text("b"), .end)
    driver.receive(.failed(.unavailable))
    driver.wireRoom = 2
    driver.retryIsDue()
    XCTAssertEqual(driver.wire.suffix(2), ["first", "a"])
    driver.wireRoom = 10
    driver.move()
    XCTAssertEqual(driver.wire.suffix(4), ["first", "a", "b", "end"])
  }

  // MARK: Refused

  func testRefusedOnceSomethingHasPassedOut() {
    let driver = Self.retrying(at: 1, 2)
    driver.start()
    driver.receive(.headers(Headers()), .failed(.unavailable))
    XCTAssertEqual(driver.delivered, ["headers", "end unavailable"])
    XCTAssertFalse(driver.retryIsDue())
  }

  func testRefusedWhenNotAllThatWasSentIsKept() {
    let driver = Self.retrying(at: 0, 1, maximumReplayBytes: 10)
    driver.start()
    driver.send(.text("a"))
    driver.order.charge(10)
    XCTAssertTrue(driver.order.canReplay)
    driver.order.charge(1)
    XCTAssertEqual(driver.order.messages?.log.isComplete, false)
    driver.receive(.failed(.unavailable))
    XCTAssertEqual(driver.delivered, ["end unavailable"])
    XCTAssertFalse(driver.retryIsDue())
  }

  /// The same messages count once, however often they are sent.
  func testWhatIsSentAgainIsNotCountedAgain() {
    let driver = Self.retrying(at: 0, 1, maximumReplayBytes: 10)
    driver.start()
    driver.send(.text("a"))
    for _ in 0..<3 {
      driver.order.charge(6)
      driver.receive(.failed(.unavailable))
      XCTAssertTrue(driver.retryIsDue())
    }
    XCTAssertEqual(driver.wire.filter { $0 == "a" }.count, 4)
    driver.order.charge(11)
    driver.receive(.failed(.unavailable))
    XCTAssertEqual(driver.delivered, ["end unavailable"])
  }

  /// The hook has kept the headers back. They pass on with the end.
  func testARefusedRetryReleasesWhatTheHookHasKept() {
    let driver = OrderDriver(1, maximumReplayBytes: 0)
    driver.onResult = { _, _ in .waits }
    driver.start()
    driver.send(.text("a"))
    driver.order.charge(1)
    driver.receive(.headers(Headers()), .failed(.unavailable))
    let headers = driver.visit("headers")
    XCTAssertTrue(driver.proceed(driver.visit("end unavailable"), .retry(nil, after: .zero)))
    XCTAssertEqual(driver.delivered, ["headers", "end unavailable"])
    XCTAssertFalse(driver.proceed(headers, .receive(.headers(Headers()))))
  }

  // MARK: Levels

  func testARetryOfByteHooksStartsBehindTheCodec() {
    let driver = Self.retrying(at: 3, 1, 2)
    var heads: [Int] = []
    driver.onRequest = { index, part in
      if part.head != nil { heads.append(index) }
      return .does(.send(part))
    }
    driver.start()
    driver.send(.text("a"), .end)
    driver.receive(.failed(.unavailable))
    XCTAssertFalse(driver.hasRoom(at: driver.order.codec), "message hooks wait meanwhile")
    XCTAssertTrue(driver.retryIsDue())
    XCTAssertEqual(heads, [0, 2, 3, 2, 3])
    XCTAssertEqual(driver.wire, ["first", "a", "end", "first", "a", "end"])
    driver.receive(.end)
    XCTAssertEqual(driver.delivered, ["end"])
  }

  /// What message hooks have is not touched by that.
  func testARetryOfByteHooksLeavesMessageHooksAlone() {
    let driver = Self.retrying(at: 2, 1, 1)
    driver.onRequest = { index, part in
      if case .message = part, index == 0 { .waits } else { .none }
    }
    driver.start()
    driver.send(.text("a"))
    driver.receive(.failed(.unavailable))
    XCTAssertTrue(driver.proceed(driver.visit("a"), .send(.text("a"))))
    XCTAssertEqual(driver.wire, ["first"], "it waits for the new attempt")
    XCTAssertTrue(driver.retryIsDue())
    XCTAssertEqual(driver.wire, ["first", "first", "a"])
    XCTAssertEqual(driver.order.finish(), [true, false, true])
  }

  /// The retry of message hooks gives up that of byte hooks, whatever is due first.
  func testARetryOfMessageHooksVoidsThatOfByteHooks() {
    let driver = OrderDriver(1, 1)
    driver.onResult = { _, _ in .waits }
    driver.start()
    driver.send(.text("a"))
    driver.receive(.failed(.unavailable))
    driver.proceed(driver.visit("end unavailable", at: 2), .receive(.failed(.aborted)))
    let outer = driver.visit("end aborted", at: 0)
    XCTAssertTrue(driver.proceed(outer, .retry(nil, after: .zero)))
    XCTAssertEqual(driver.retries.count, 1)
    XCTAssertTrue(driver.retryIsDue())
    driver.receive(.failed(.unavailable))
    driver.proceed(driver.visit("end unavailable", at: 2), .retry(nil, after: .seconds(1)))
    XCTAssertEqual(driver.order.bytes?.isWaitingToRetry, true)
    // An interceptor further out gives its attempt up.
    _ = driver.order.close(insideOf: 0, cuttingAt: nil)
    XCTAssertFalse(driver.order.isWaitingToRetry)
    XCTAssertFalse(driver.retryIsDue(), "the attempt that it belongs to is given up")
    XCTAssertEqual(driver.wire, ["first", "a", "first", "a"])
  }

  // MARK: Who waits, and what counts

  /// Stages outside of the one that retries have had no result, and still wait for one.
  func testStagesOutsideStillWait() {
    let driver = Self.retrying(at: 2, 4)
    driver.start()
    driver.receive(.failed(.unavailable))
    XCTAssertEqual(driver.order.finish(), [true, true, false, false, false])
    XCTAssertFalse(driver.retryIsDue(), "the call is over")
    XCTAssertEqual(driver.wire, ["first"])
  }

  func testAllWaitOnceTheNewAttemptHasStarted() {
    let driver = Self.retrying(at: 2, 4)
    driver.start()
    driver.receive(.failed(.unavailable))
    driver.retryIsDue()
    XCTAssertEqual(driver.order.finish(), [true, true, true, true, false])
  }

  func testARetryThatWasOvertakenIsVoid() {
    for cut in [0, 1] {
      let driver = Self.retrying(at: 0, 1)
      driver.start()
      driver.receive(.failed(.unavailable))
      _ = driver.order.close(insideOf: -1, cuttingAt: cut)
      XCTAssertFalse(driver.retryIsDue())
      XCTAssertEqual(driver.wire, ["first"])
    }
  }

  /// Hooks that have kept a `proceed` of the attempt that was given up.
  func testProceedsOfTheOldAttemptFindNothing() {
    let driver = OrderDriver(2)
    driver.onRequest = { index, part in
      if case .message = part, index == 1 { .waits } else { .none }
    }
    driver.onResult = { index, result in
      index == 0 && result.error != nil ? .does(.retry(nil, after: .zero)) : .none
    }
    driver.start()
    driver.send(.text("a"))
    let old = driver.visit("a")
    driver.receive(.failed(.unavailable))
    XCTAssertFalse(driver.proceed(old, .send(.text("late"))))
    driver.retryIsDue()
    XCTAssertFalse(driver.proceed(old, .send(.text("late"))))
    XCTAssertTrue(driver.proceed(driver.visit("a"), .send(.text("a"))))
    XCTAssertEqual(driver.wire, ["first", "first", "a"])
  }

  func testANewAttemptAfterAnAnswer() {
    let driver = Self.retrying(at: 0, 2)
    let attempts = Box(0)
    driver.onRequest = { index, part in
      guard index == 1, part.head != nil, attempts.increment() == 1 else { return .none }
      return .does(.answer([.failed(.unavailable)]))
    }
    driver.start()
    driver.move()
    XCTAssertNil(driver.order.cut, "the retry has mended it")
    XCTAssertNil(driver.order.answerEntry)
    XCTAssertTrue(driver.retryIsDue())
    driver.receive(.end)
    XCTAssertEqual(driver.wire, ["first"])
    XCTAssertEqual(driver.delivered, ["end"])
  }

  func testAHeadThatWaitedIsGivenUp() {
    let driver = OrderDriver(2)
    driver.onRequest = { index, part in index == 1 && part.head != nil ? .waits : .none }
    driver.start()
    XCTAssertEqual(driver.states.headHolder, 1)
    _ = driver.order.close(insideOf: 0, cuttingAt: nil)
    XCTAssertNil(driver.states.headHolder)
    XCTAssertNil(driver.order.held(at: 1))
  }

  func testReopeningKeepsTheStageItself() {
    let driver = OrderDriver(2)
    driver.start()
    driver.receive(.headers(Headers()))
    XCTAssertEqual((0..<3).map { driver.states.hasPassedOut(at: $0) }, [true, true, false])
    _ = driver.order.close(insideOf: 0, cuttingAt: 1)
    _ = driver.order.close(insideOf: 0, cuttingAt: nil)
    XCTAssertNil(driver.order.cut)
    XCTAssertEqual((0..<3).map { driver.states.hasPassedOut(at: $0) }, [true, false, false])
    XCTAssertEqual(driver.order.finish(), [true, false, false])
  }
}
