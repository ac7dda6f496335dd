import XCTest

@testable import Connect

final class HookWindowTests: XCTestCase {
  func testValuesGoOnInOrderWhateverTheOrderInWhichTheyAreResolved() {
    var window = HookWindow<String>()
    let first = window.appendWaiting("a")
    window.appendReady("b")
    let third = window.appendWaiting("c")
    XCTAssertEqual(window.count, 3)
    XCTAssertNil(window.takeReady())
    window.resolve(third, with: "C")
    XCTAssertNil(window.takeReady())
    window.resolve(first, with: "A")
    XCTAssertEqual(
      [window.takeReady(), window.takeReady(), window.takeReady(), window.takeReady()],
      ["A", "b", "C", nil]
    )
    XCTAssertEqual(window.count, 0)
  }

  func testDroppedValuesReleaseWhatWaitsBehind() {
    var window = HookWindow<String>()
    let first = window.appendWaiting("a")
    let second = window.appendWaiting("b")
    window.resolve(second, with: "b")
    window.resolve(first, with: nil)
    XCTAssertEqual(window.takeReady(), "b")
    XCTAssertEqual(window.count, 0)
  }

  func testANumberCountsOnce() {
    var window = HookWindow<String>()
    let id = window.appendWaiting("a")
    XCTAssertEqual(window.waiting(id), "a")
    window.resolve(id, with: "b")
    XCTAssertNil(window.waiting(id))
    XCTAssertEqual(window.takeReady(), "b")
    XCTAssertNil(window.waiting(id))
    window.removeAll()
    let next = window.appendWaiting("c")
    XCTAssertNotEqual(next, id, "a late proceed must not find another value")
  }

  func testRemovingWhatIsBehindAValue() {
    var window = HookWindow<String>()
    let first = window.appendWaiting("a")
    let second = window.appendWaiting("b")
    window.appendReady("c")
    window.resolve(first, with: "a")
    window.removeAll(behind: first)
    XCTAssertNil(window.waiting(second))
    XCTAssertEqual(window.takeReady(), "a")
    XCTAssertNil(window.takeReady())
  }
}
