import XCTest

@testable import ConnectXDS

final class PriorityNamesTests: XCTestCase {
  private var names = PriorityNames()

  private func numbers(_ priorities: [String]) -> [Int] {
    self.names.update(priorities.map { $0.map { XDSLocality(zone: String($0)) } })
    return self.names.numbers
  }

  func testAPriorityKeepsTheNameOfItsLocality() {
    XCTAssertEqual(self.numbers(["ab", "c"]), [0, 1])
    XCTAssertEqual(self.numbers(["ab", "c"]), [0, 1])
    XCTAssertEqual(self.numbers(["c", "ab"]), [1, 0], "swapped")
    XCTAssertEqual(self.numbers(["d", "c", "ab"]), [2, 1, 0], "a new one in front")
    XCTAssertEqual(self.numbers(["b"]), [0])
    XCTAssertEqual(self.numbers(["d"]), [3], "its number was given up")
  }

  func testASplitPriorityGivesItsNameOnce() {
    XCTAssertEqual(self.numbers(["abc"]), [0])
    XCTAssertEqual(self.numbers(["a", "b", "c"]), [0, 1, 2])
    XCTAssertEqual(self.numbers(["abc"]), [0], "joined")
  }

  func testJoinedPriorities() {
    XCTAssertEqual(self.numbers(["a", "b"]), [0, 1])
    XCTAssertEqual(self.numbers(["ba", "c"]), [1, 2])
  }

  /// A server may name a locality in several priorities: the last one gives its name.
  func testALocalityInSeveralPriorities() {
    for _ in 0..<20 {
      self.names = PriorityNames()
      XCTAssertEqual(self.numbers(["ab", "ac", "ad", "ae"]), [0, 1, 2, 3])
      XCTAssertEqual(self.numbers(["a"]), [3])
    }
  }

  func testEmptyPriorities() {
    XCTAssertEqual(self.numbers([""]), [0])
    XCTAssertEqual(self.numbers(["a"]).count, 1)
  }
}
