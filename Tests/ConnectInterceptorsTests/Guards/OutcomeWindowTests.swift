import XCTest

@testable import ConnectInterceptors

final class OutcomeWindowTests: XCTestCase {
  func testCountsOfTheLastTenSteps() {
    var window = OutcomeWindow(length: .seconds(10))
    for second in 0..<25 { window.record(isFailure: second % 5 == 0, at: .milliseconds(1000 * second + 500)) }
    let counts = window.counts(at: .milliseconds(24_900))
    XCTAssertEqual(counts.total, 10)
    XCTAssertEqual(counts.failures, 2)
    XCTAssertEqual(window.counts(at: .milliseconds(25_000)).total, 9)
    XCTAssertEqual(window.counts(at: .milliseconds(33_999)).total, 1)
    XCTAssertEqual(window.counts(at: .milliseconds(34_000)).total, 0)
  }

  func testStepsAreCountedFromTheirFirstInstant() {
    var window = OutcomeWindow(length: .seconds(10))
    window.record(isFailure: true, at: .zero)
    window.record(isFailure: true, at: .milliseconds(999))
    window.record(isFailure: false, at: .seconds(1))
    XCTAssertEqual(window.counts(at: .milliseconds(9999)).total, 3)
    XCTAssertEqual(window.counts(at: .seconds(10)).total, 1)
    XCTAssertEqual(window.counts(at: .seconds(11)).total, 0)
  }

  /// Two calls may read the clock in another order than they come to the window.
  func testATimeBeforeThePresentStepCountsInIt() {
    var window = OutcomeWindow(length: .seconds(10))
    window.record(isFailure: false, at: .seconds(5))
    window.record(isFailure: true, at: .milliseconds(4999))
    XCTAssertEqual(window.counts(at: .milliseconds(14_999)).failures, 1)
    XCTAssertEqual(window.counts(at: .seconds(15)).failures, 0)
  }

  func testNothingIsLeftOnceAllIsRemovedOrLongAgo() {
    var window = OutcomeWindow(length: .seconds(10))
    for second in 0..<10 { window.record(isFailure: true, at: .seconds(second)) }
    window.removeAll()
    XCTAssertEqual(window.counts(at: .seconds(9)).total, 0)
    window.record(isFailure: false, at: .seconds(9))
    XCTAssertEqual(window.counts(at: .seconds(9)).total, 1)
    // A multiple of the window later, where the same slot serves.
    window.record(isFailure: true, at: .seconds(1_000_009))
    let counts = window.counts(at: .seconds(1_000_009))
    XCTAssertEqual(counts.total, 1)
    XCTAssertEqual(counts.failures, 1)
  }

  func testTheShortestWindow() {
    var window = OutcomeWindow(length: .zero)
    window.record(isFailure: true, at: .seconds(3600))
    XCTAssertEqual(window.counts(at: .seconds(3600)).total, 1)
    XCTAssertEqual(window.counts(at: .seconds(3600) + .nanoseconds(20)).total, 0)
  }
}
