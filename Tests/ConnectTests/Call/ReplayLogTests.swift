import XCTest

@testable import Connect

final class ReplayLogTests: XCTestCase {
  func testKeepsWhatIsLittleEnough() {
    var log = ReplayLog<String>(maximumBytes: 10, maximumCount: 3)
    log.append("a", byteCount: 5)
    log.append("b", byteCount: 5)
    XCTAssertEqual(log.elements, ["a", "b"])
    XCTAssertTrue(log.isComplete)
    log.charge(1)
    XCTAssertEqual(log.elements, [])
    XCTAssertFalse(log.isComplete)
    log.append("c")
    XCTAssertEqual(log.elements, [])
  }

  func testCountsElementsToo() {
    var log = ReplayLog<String>(maximumBytes: 10, maximumCount: 3)
    for element in ["a", "b", "c"] { log.append(element) }
    XCTAssertTrue(log.isComplete)
    log.append("d")
    XCTAssertFalse(log.isComplete)
  }

  func testElementsThatAreSentAgainAreNotCountedTwice() {
    var log = ReplayLog<String>(maximumBytes: 10)
    log.append("a")
    log.charge(6)
    for _ in 0..<5 {
      log.restart()
      log.charge(6)
    }
    XCTAssertTrue(log.isComplete)
    log.charge(5)
    XCTAssertFalse(log.isComplete)
  }
}
