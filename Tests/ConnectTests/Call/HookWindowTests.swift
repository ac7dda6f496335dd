import XCTest

@testable import Connect

final class HookWindowTests: XCTestCase {
  func testValuesGoOnInOrderWhateverTheOrderInWhichTheyAreResolved() {
    let window = HookWindow<String>()
    let first = 0
    window.appendWaiting("a", as: first)
    window.appendReady("b")
    let third = 2
    window.appendWaiting("c", as: third)
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
    let window = HookWindow<String>()
    let first = 0
    window.appendWaiting("a", as: first)
    let second = 1
    window.appendWaiting("b", as: second)
    window.resolve(second, with: "b")
    window.resolve(first, with: nil)
    XCTAssertEqual(window.takeReady(), "b")
    XCTAssertEqual(window.count, 0)
  }

  func testANumberCountsOnce() {
    let window = HookWindow<String>()
    let id = 0
    window.appendWaiting("a", as: id)
    XCTAssertEqual(window.waiting(id), "a")
    window.resolve(id, with: "b")
    XCTAssertNil(window.waiting(id))
    XCTAssertEqual(window.takeReady(), "b")
    XCTAssertNil(window.waiting(id))
  }

  func testRemovingWhatIsBehindAValue() {
    let window = HookWindow<String>()
    let first = 0
    window.appendWaiting("a", as: first)
    let second = 1
    window.appendWaiting("b", as: second)
    window.appendReady("c")
    window.resolve(first, with: "a")
    window.removeAll(behind: first)
    XCTAssertNil(window.waiting(second))
    XCTAssertEqual(window.takeReady(), "a")
    XCTAssertNil(window.takeReady())
  }
}
