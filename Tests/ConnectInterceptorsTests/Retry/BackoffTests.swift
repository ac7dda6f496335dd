import ConnectInterceptors
import XCTest

final class BackoffTests: XCTestCase {
  func testLongestDelayGrowsUpToTheMaximum() {
    let backoff = Backoff(base: .milliseconds(100), multiplier: 2, maximum: .milliseconds(500))
    let delays = (1...5).map { backoff.longestDelay(beforeRetry: $0) }
    XCTAssertEqual(delays, [100, 200, 400, 500, 500].map { .milliseconds($0) })
  }

  func testDelayIsDrawnFromZeroToTheLongest() {
    let backoff = Backoff(base: .milliseconds(100))
    XCTAssertEqual(backoff.delay(beforeRetry: 2, random: 0), .zero)
    XCTAssertEqual(backoff.delay(beforeRetry: 2, random: 0.5), .milliseconds(100))
    XCTAssertEqual(backoff.delay(beforeRetry: 2, random: 1), .milliseconds(200))
    for retry in 1...20 {
      let delay = backoff.delay(beforeRetry: retry)
      XCTAssertTrue(delay >= .zero && delay <= backoff.longestDelay(beforeRetry: retry))
    }
  }

  func testLateRetriesAndOddParametersDoNotOverflow() {
    XCTAssertEqual(Backoff().longestDelay(beforeRetry: .max), .seconds(10))
    XCTAssertEqual(Backoff(base: .seconds(20)).longestDelay(beforeRetry: 1), .seconds(10))
    XCTAssertEqual(Backoff(base: .seconds(-1)).longestDelay(beforeRetry: 3), .zero)
    XCTAssertEqual(Backoff(base: .seconds(1), multiplier: 0).longestDelay(beforeRetry: 3), .seconds(1))
  }
}
