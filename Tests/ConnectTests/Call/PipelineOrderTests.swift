import NIOCore
import XCTest

@testable import Connect

/// The order of parts at the stages of a pipeline: what waits, what goes on, and what is given up.
final class PipelineOrderTests: XCTestCase {
  private typealias Hook = OrderDriver.Hook

  /// Lets the hooks of these stages wait with messages.
  private static func waitingWithMessages(at stages: Set<Int>) -> (Int, RequestPart) -> Hook {
    { index, part in
      if case .message = part, stages.contains(index) { .waits } else { .none }
    }
  }

  private static func waitingWithResults(at stages: Set<Int>) -> (Int, ResultPart) -> Hook {
    { index, _ in stages.contains(index) ? .waits : .none }
  }

  // MARK: Passing

  func testPartsPassAtOnce() {
    let driver = OrderDriver(2, 1)
    driver.onRequest = { _, part in .does(.send(part)) }
    driver.onResult = { _, result in .does(.receive(result)) }
    driver.start()
    driver.send(.text("a"), .text("b"), .end)
    XCTAssertEqual(driver.wire, ["first", "a", "b", "end"])
    driver.receive(.headers(Headers()), .text("c"), .end)
    XCTAssertEqual(driver.delivered, ["headers", "c", "end"])
    XCTAssertFalse(driver.order.mayKeep, "nothing was kept")
    XCTAssertNil(driver.order.held(at: 0))
  }

  func testAPipelineWithoutInterceptors() {
    let driver = OrderDriver(0)
    driver.start()
    driver.send(.text("a"))
    driver.receive(.text("b"))
    driver.answer(at: 0, [.failed(.aborted)])
    driver.move()
    driver.send(.text("c"))
    XCTAssertEqual(driver.wire, ["first", "a"])
    XCTAssertEqual(driver.delivered, ["b", "end aborted"])
    XCTAssertEqual(driver.order.finish(), [])
  }

  func testTheOrderOfTheWireIsThatOfTheCaller() {
    let driver = OrderDriver(2)
    driver.onRequest = Self.waitingWithMessages(at: [0])
    driver.start()
    driver.send(.text("a"), .text("b"), .text("c"), .end)
    XCTAssertEqual(driver.wire, ["first"])
    XCTAssertEqual(driver.order.held(at: 0), .requestMessage)
    XCTAssertTrue(driver.proceed(driver.visit("c"), .send(.text("C"))))
    XCTAssertTrue(driver.proceed(driver.visit("b"), .drop))
    XCTAssertEqual(driver.wire, ["first"], "a waits")
    XCTAssertTrue(driver.proceed(driver.visit("a"), .send(.text("A"))))
    XCTAssertEqual(driver.wire, ["first", "A", "C", "end"])
    XCTAssertFalse(driver.order.mayKeep)
  }

  func testTheOrderOfResultsIsThatOfTheWire() {
    let driver = OrderDriver(1, 1)
    driver.onResult = Self.waitingWithResults(at: [2])
    driver.start()
    driver.receive(.headers(Headers()), .text("a"), .end)
    XCTAssertEqual(driver.order.held(at: 2), .response)
    driver.proceed(driver.visit("end"), .receive(.end))
    driver.proceed(driver.visit("a"), .receive(.text("A")))
    XCTAssertEqual(driver.delivered, [])
    driver.proceed(driver.visit("headers"), .receive(.headers(Headers())))
    XCTAssertEqual(driver.delivered, ["headers", "A", "end"])
  }

  // MARK: Room

  func testAStageTakesNoMoreThanItsLimit() {
    for (limit, expected) in [(0, 2), (2, 2), (3, 3)] {
      let driver = OrderDriver(1, maximumWaiting: limit)
      driver.onRequest = Self.waitingWithMessages(at: [0])
      driver.onResult = Self.waitingWithResults(at: [0])
      driver.start()
      for number in 0..<expected { XCTAssertTrue(driver.send(.text("\(number)"))) }
      XCTAssertFalse(driver.send(.text("more")))
      for number in 0..<expected {
        XCTAssertTrue(driver.wantsResult)
        driver.receive(.text("r\(number)"))
      }
      XCTAssertFalse(driver.wantsResult)
      driver.proceed(driver.visit("0"), .drop)
      driver.proceed(driver.visit("r0"), .drop)
      XCTAssertTrue(driver.send(.text("more")))
      XCTAssertTrue(driver.wantsResult)
    }
  }

  func testTheWireHoldsMessagesBack() {
    let driver = OrderDriver(2, maximumWaiting: 2)
    driver.wireRoom = 1
    driver.start()
    // With room behind them they would have passed: so each stage keeps two.
    for number in 0..<4 { XCTAssertTrue(driver.send(.text("\(number)"))) }
    XCTAssertFalse(driver.send(.text("more")))
    driver.wireRoom = .max
    driver.move()
    XCTAssertEqual(driver.wire, ["first", "0", "1", "2", "3"])
  }

  func testTheCallerHoldsResultsBack() {
    let driver = OrderDriver(2, maximumWaiting: 2)
    driver.demand = 1
    driver.start()
    driver.receive(.headers(Headers()), .text("a"), .text("b"), .end)
    XCTAssertEqual(driver.delivered, ["headers"])
    driver.demand = 2
    driver.move()
    XCTAssertEqual(driver.delivered, ["headers", "a", "b"])
    driver.demand = 1
    driver.move()
    XCTAssertEqual(driver.delivered, ["headers", "a", "b", "end"])
  }

  func testAHeadThatWaitsHoldsMessagesBack() {
    let driver = OrderDriver(1)
    driver.onRequest = { _, part in part.head == nil ? .none : .waits }
    driver.start()
    XCTAssertEqual(driver.states.headHolder, 0)
    XCTAssertEqual(driver.order.held(at: 0), .request)
    XCTAssertFalse(driver.send(.text("a")))
    driver.proceed(driver.visit("first"), .send(.head("other")))
    XCTAssertNil(driver.states.headHolder)
    XCTAssertTrue(driver.send(.text("a")))
    XCTAssertEqual(driver.wire, ["other", "a"])
  }

  /// While the hook runs, the head has not gone on.
  func testAHookThatRunsHasTheHead() {
    let driver = OrderDriver(1)
    var heldHead: [Bool] = []
    driver.onRequest = { _, part in
      heldHead.append(driver.states.headHolder == 0)
      return .does(.send(part))
    }
    driver.start()
    driver.send(.text("a"))
    XCTAssertEqual(heldHead, [true, false])
    XCTAssertNil(driver.states.headHolder)
  }

  // MARK: What a proceed counts for

  func testAProceedCountsOnce() {
    let driver = OrderDriver(1)
    driver.onRequest = Self.waitingWithMessages(at: [0])
    driver.onResult = Self.waitingWithResults(at: [0])
    driver.wireRoom = 1
    driver.start()
    driver.send(.text("a"))
    driver.receive(.text("b"))
    let visits = [driver.visit("a"), driver.visit("b")]
    driver.demand = 0
    XCTAssertTrue(driver.proceed(visits[0], .send(.text("A"))))
    XCTAssertTrue(driver.proceed(visits[1], .receive(.text("B"))))
    XCTAssertFalse(driver.proceed(visits[0], .drop), "it still waits for room")
    XCTAssertFalse(driver.proceed(visits[1], .drop))
    driver.wireRoom = 1
    driver.demand = 1
    driver.move()
    XCTAssertEqual(driver.wire, ["first", "A"])
    XCTAssertEqual(driver.delivered, ["B"])
    XCTAssertFalse(driver.proceed(visits[0], .send(.text("late"))))
    XCTAssertFalse(driver.proceed(visits[1], .receive(.text("late"))))
    XCTAssertEqual(driver.wire.count + driver.delivered.count, 3)
  }

  func testOnlyMessagesCanBeDropped() {
    for waits in [false, true] {
      let driver = OrderDriver(1)
      driver.onResult = { _, _ in waits ? .waits : .does(.drop) }
      driver.start()
      driver.receive(.headers(Headers()), .text("a"), .end)
      for name in waits ? ["headers", "a", "end"] : [] { driver.proceed(driver.visit(name), .drop) }
      XCTAssertEqual(driver.delivered, ["headers", "end"], "waits \(waits)")
    }
  }

  // MARK: Failures and answers

  func testAFailureIsUnsent() {
    let parts: [(isUnary: Bool, messages: Int, part: RequestPart, result: String)] = [
      (false, 1, .head("first"), "end aborted"), (false, 0, .head("first"), "end aborted"),
      (true, 1, .head("first"), "whole aborted"), (true, 0, .head("first"), "bytes aborted"),
    ]
    for (isUnary, messages, part, result) in parts {
      for waits in [false, true] {
        let driver = OrderDriver(messages, 1 - messages, isUnary: isUnary)
        let index = messages == 1 ? 0 : 1
        let fail = HookAction.fail(ConnectError(code: .aborted))
        let states = driver.states
        let form: Stage.Form = isUnary ? (messages == 1 ? .response : .responseBytes) : .stream
        let step: Stage.RequestStep?
        if waits {
          states.wait(part, at: index, as: 1)
          step = states.didRequest(fail, 1, at: index, form)
        } else {
          step = states.didReturn(fail, given: part, at: index, form, mayPass: true)
        }
        guard case .answer(let results) = step else {
          return XCTFail("no answer: \(String(describing: step))")
        }
        XCTAssertEqual(results.map(\.name), [result])
        XCTAssertEqual(results.first?.error?.isUnsent, true)
      }
    }
  }

  /// Stages outside get the answer, one result at a time; stages inside hear of nothing and can do nothing more.
  func testAnAnswerTakesThePlaceOfWhatIsInside() {
    let driver = OrderDriver(3)
    driver.onRequest = { index, part in part.head != nil && index == 1 || index == 2 ? .waits : .none }
    driver.onResult = { index, result in index == 0 ? .does(.receive(result)) : .none }
    driver.start()
    driver.demand = 2
    let visit = driver.visit("first", at: 1)
    XCTAssertTrue(driver.proceed(visit, .answer([.headers(Headers()), .text("a"), .end])))
    XCTAssertEqual(driver.order.answerEntry, 0)
    XCTAssertEqual(driver.order.cut, 1)
    XCTAssertEqual(driver.delivered, ["headers", "a"])
    XCTAssertTrue(driver.send(.text("b"), .end), "there is always room where parts are thrown away")
    XCTAssertFalse(driver.proceed(visit, .send(.head("late"))))
    driver.demand = 1
    driver.move()
    XCTAssertEqual(driver.delivered, ["headers", "a", "end"])
    XCTAssertEqual(driver.wire, [])
    XCTAssertTrue(HookWindow.isClear(driver.states[2].requests))
    XCTAssertEqual(driver.order.finish(), [false, false, false, false])
  }

  /// Stages outside keep what they have; what is given up comes back to be released.
  func testClosingGivesUpWhatIsInside() {
    let driver = OrderDriver(3)
    driver.onRequest = Self.waitingWithMessages(at: [0, 1, 2])
    driver.onResult = Self.waitingWithResults(at: [2])
    driver.start()
    driver.send(.text("a"), .text("b"), .text("c"))
    driver.receive(.text("d"))
    driver.proceed(driver.visit("a"), .send(.text("a")))
    driver.proceed(driver.visit("b"), .send(.text("b")))
    driver.proceed(driver.visit("a", at: 1), .send(.text("a")))
    let epoch = driver.order.epoch
    let given = driver.order.close(insideOf: 1, cuttingAt: 2)
    XCTAssertEqual(given.count, 1, "one stage had something")
    XCTAssertEqual(given.first?.requests?.count, 1)
    XCTAssertEqual(given.first?.results?.count, 1)
    XCTAssertGreaterThan(driver.order.epoch, epoch)
    XCTAssertEqual((0..<4).map { driver.states[$0].requests?.count ?? 0 }, [1, 1, 0, 0])
    XCTAssertFalse(driver.proceed(driver.visit("a", at: 2), .send(.text("a"))))
    XCTAssertTrue(driver.proceed(driver.visit("b", at: 1), .send(.text("b"))))
    XCTAssertTrue(driver.proceed(driver.visit("c"), .send(.text("c"))))
    XCTAssertEqual(driver.wire, ["first"])
    XCTAssertEqual(driver.order.finish(), [true, true, false, false])
    XCTAssertEqual(driver.order.cut, 0)
  }

  // MARK: Other results in place of given ones

  func testAnEndInPlaceOfAMessageEndsTheStream() {
    for waits in [false, true] {
      let driver = OrderDriver(2)
      driver.onResult = { index, result in
        guard index == 0, result.isMessage else { return .none }
        return waits ? .waits : .does(.receive(.failed(.aborted)))
      }
      driver.start()
      driver.receive(.headers(Headers()), .text("a"))
      if waits {
        driver.receive(.text("b"), .end)
        XCTAssertTrue(driver.proceed(driver.visit("a"), .receive(.failed(.aborted))))
        XCTAssertFalse(driver.proceed(driver.visit("b"), .receive(.text("late"))))
      }
      XCTAssertEqual(driver.delivered, ["headers", "end aborted"])
      XCTAssertEqual(driver.dropCount, 1)
      XCTAssertEqual(driver.order.cut, 0)
      driver.receive(.text("c"))
      XCTAssertEqual(driver.delivered, ["headers", "end aborted"])
      XCTAssertEqual(driver.order.finish(), [false, false, false])
    }
  }

  func testAMessageInPlaceOfTheEndIsFollowedByAnEnd() {
    for waits in [false, true] {
      let driver = OrderDriver(2)
      driver.onResult = { index, result in
        guard index == 1, result.isEnd else { return .none }
        return waits ? .waits : .does(.receive(.text("last")))
      }
      driver.start()
      driver.receive(.headers(Headers()), .failed(.aborted))
      if waits { driver.proceed(driver.visit("end aborted"), .receive(.text("last"))) }
      XCTAssertEqual(driver.delivered, ["headers", "last", "end"])
      XCTAssertEqual(driver.dropCount, 0)
    }
  }

  // MARK: The end of the call

  func testFinishSaysWhoStillWaits() {
    let driver = OrderDriver(2, 2)
    driver.onRequest = { index, part in part.head != nil && index == 3 ? .waits : .none }
    driver.start()
    XCTAssertEqual(driver.order.finish(), [true, true, false, false, false])
    XCTAssertEqual(driver.order.finish(), [false, false, false, false, false], "told once")
    XCTAssertEqual(driver.order.cut, 0)
  }

  func testStagesThatHaveTheEndDoNotWait() {
    let driver = OrderDriver(3)
    driver.onResult = { index, _ in index == 1 ? .waits : .none }
    driver.start()
    driver.receive(.end)
    XCTAssertEqual(driver.order.finish(), [true, false, false, false])
    XCTAssertFalse(driver.states.accept(.text("late"), at: 0))
  }

  func testReleasingGivesUpEverything() {
    let driver = OrderDriver(1, 1)
    driver.onRequest = Self.waitingWithMessages(at: [2])
    driver.start()
    driver.send(.text("a"))
    let remains = driver.order.takeRemains()
    XCTAssertEqual(remains?.waiting.map(\.requests?.count), [1])
    XCTAssertEqual(remains?.messages.level?.log.elements.map(\.name), ["a"])
    XCTAssertEqual(remains?.bytes.level?.log.elements.map(\.name), ["a"])
    XCTAssertEqual(remains?.stages.count, 3)
    XCTAssertNil(driver.order.messages)
    XCTAssertNil(driver.order.bytes)
    XCTAssertTrue(driver.order.stages.isEmpty)
    XCTAssertNil(driver.order.takeRemains())
    XCTAssertEqual(driver.wire, ["first"])
  }

  func testWhoHoldsWhat() {
    let driver = OrderDriver(1)
    driver.onResult = Self.waitingWithResults(at: [0])
    driver.start()
    driver.receive(.headers(Headers()))
    XCTAssertEqual(driver.order.held(at: 0), .headers, "most hooks wait for more")
    driver.receive(.text("a"))
    XCTAssertEqual(driver.order.held(at: 0), .response)
  }
}
