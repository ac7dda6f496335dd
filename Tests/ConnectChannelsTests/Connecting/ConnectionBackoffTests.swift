import ConnectChannels
import XCTest

final class ConnectionBackoffTests: XCTestCase {
  private func seconds(_ duration: Duration) -> Double { duration / .seconds(1) }

  func testGrowthWithoutJitter() {
    var backoff = ConnectionBackoff(.init(jitter: 0))
    var random = SeededRandom(seed: 1)
    var expected = 1.0
    for _ in 0..<20 {
      XCTAssertEqual(self.seconds(backoff.next(random: &random)), expected, accuracy: 1e-6)
      expected = min(expected * 1.6, 120)
    }
    XCTAssertEqual(expected, 120)
    backoff.reset()
    XCTAssertEqual(backoff.next(random: &random), .seconds(1))
  }

  func testJitterIsWithinAFifthAndUsesAllOfIt() {
    for seed in seeds {
      var random = SeededRandom(seed: seed)
      var ratios: [Double] = []
      for _ in 0..<1000 {
        var backoff = ConnectionBackoff()
        var expected = 1.0
        for _ in 0..<15 {
          ratios.append(self.seconds(backoff.next(random: &random)) / expected)
          expected = min(expected * 1.6, 120)
        }
      }
      let (low, high) = (ratios.min() ?? 0, ratios.max() ?? 0)
      XCTAssertTrue((0.8..<0.81).contains(low), "\(low) seed \(seed)")
      XCTAssertTrue((1.19...1.2).contains(high), "\(high) seed \(seed)")
      XCTAssertEqual(ratios.reduce(0, +) / Double(ratios.count), 1, accuracy: 0.01, "seed \(seed)")
    }
  }

  func testTimeOfAnAttempt() {
    let backoff = ConnectionBackoff()
    XCTAssertEqual(backoff.timeLimit(before: .seconds(1)), .seconds(20))
    XCTAssertEqual(backoff.timeLimit(before: .seconds(100)), .seconds(100))
  }

  func testSettingsAreBroughtIntoRange() {
    let strange = ConnectionBackoff.Configuration(
      initial: .seconds(-1),
      multiplier: 0,
      maximum: .seconds(-5),
      jitter: 7,
      minimumAttempt: .seconds(-1)
    )
    XCTAssertEqual(strange.initial, .zero)
    XCTAssertEqual(strange.multiplier, 1)
    XCTAssertEqual(strange.maximum, .zero)
    XCTAssertEqual(strange.jitter, 1)
    XCTAssertEqual(strange.minimumAttempt, .zero)
    let nan = ConnectionBackoff.Configuration(multiplier: .nan, jitter: .nan)
    XCTAssertEqual(nan.multiplier, 1)
    XCTAssertEqual(nan.jitter, 0)
  }

  func testTheLargestNumbersDoNotOverflow() {
    let longest = Duration(secondsComponent: .max, attosecondsComponent: 0)
    var backoff = ConnectionBackoff(.init(initial: longest, multiplier: .infinity, maximum: longest))
    let century = Duration.seconds(100 * 365 * 24 * 60 * 60)
    for _ in 0..<3 { XCTAssertEqual(backoff.next(share: 1), century) }
  }
}
