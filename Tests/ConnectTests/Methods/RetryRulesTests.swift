import Connect
import XCTest

final class RetryRulesTests: XCTestCase {
  private func longest(_ initial: Duration, _ multiplier: Double, _ maximum: Duration) -> [Duration] {
    let rules = RetryRules(
      maximumAttempts: 5,
      initialBackoff: initial,
      maximumBackoff: maximum,
      backoffMultiplier: multiplier,
      codes: [.unavailable]
    )
    return (1...4).map { rules.delay(beforeRetry: $0, random: 1) }
  }

  /// gRPC's proposal A6.
  func testBackoff() {
    XCTAssertEqual(
      self.longest(.seconds(1), 2, .seconds(5)),
      [.seconds(1), .seconds(2), .seconds(4), .seconds(5)]
    )
    XCTAssertEqual(
      self.longest(.seconds(8), 0.5, .seconds(100)),
      [.seconds(8), .seconds(4), .seconds(2), .seconds(1)]
    )
    XCTAssertEqual(self.longest(.seconds(8), 2, .seconds(1)), Array(repeating: .seconds(1), count: 4))
    let rules = RetryRules(
      maximumAttempts: 5,
      initialBackoff: .seconds(4),
      maximumBackoff: .seconds(100),
      backoffMultiplier: 2,
      codes: []
    )
    XCTAssertEqual(rules.delay(beforeRetry: 2, random: 0.25), .seconds(2))
    XCTAssertEqual(rules.delay(beforeRetry: 2, random: 0), .zero)
    for _ in 0..<100 { XCTAssertTrue((.zero ... .seconds(8)).contains(rules.delay(beforeRetry: 2))) }
  }

  /// A program may build what JSON cannot say.
  func testExtremeNumbers() {
    for initial in [Duration.seconds(Int64.min), .seconds(-1), .zero, .seconds(Int64.max)] {
      for multiplier in [-1, 0, .nan, .infinity, 1e300, Double.leastNonzeroMagnitude] {
        for maximum in [Duration.seconds(Int64.min), .zero, .seconds(Int64.max)] {
          for delay in self.longest(initial, multiplier, maximum) {
            XCTAssertGreaterThanOrEqual(delay, .zero)
            XCTAssertLessThanOrEqual(delay, .longest)
          }
        }
      }
    }
  }
}
