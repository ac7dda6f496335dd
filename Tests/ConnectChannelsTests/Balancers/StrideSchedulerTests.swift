import XCTest

@testable import ConnectChannels

final class StrideSchedulerTests: XCTestCase {
  private func counts(_ weights: [Double], _ limits: StrideScheduler.Limits, _ picks: Int, seed: UInt64)
    -> [Int]
  {
    var random = SeededRandom(seed: seed)
    var scheduler = StrideScheduler(weights, limits: limits, random: &random)
    var counts = Array(repeating: 0, count: weights.count)
    for _ in 0..<picks { counts[scheduler.next()] += 1 }
    return counts
  }

  func testShares() {
    let table: [([Double], expected: [Double])] = [
      ([1, 2, 3, 4], [1, 2, 3, 4]),
      ([5, 5, 5], [1, 1, 1]),
      ([1, 100], [1, 100]),
      ([0.001, 0.003], [1, 3]),
      ([1e300, 3e300], [1, 3]),
      // Unknown ones get the mean of the others.
      ([2, 0, 4], [2, 3, 4]),
      ([2, -1, .nan, 4, .infinity], [2, 3, 3, 4, 3]),
      // Fewer than two known: all the same.
      ([7], [1]),
      ([0, 7, 0], [1, 1, 1]),
      ([0, 0], [1, 1]),
    ]
    for (weights, expected) in table {
      for seed in seeds {
        let picks = 100_000
        let counts = self.counts(weights, .given, picks, seed: seed)
        let total = expected.reduce(0, +)
        for (count, share) in zip(counts, expected) {
          let wanted = Double(picks) * share / total
          XCTAssertEqual(Double(count), wanted, accuracy: wanted * 0.02 + 2, "\(weights) seed \(seed)")
        }
      }
    }
  }

  /// Already within a few rounds the shares are those of the weights, give or take one call.
  func testShortSequencesAreEven() {
    for seed in seeds {
      let counts = self.counts([1, 2, 4, 8], .given, 150, seed: seed)
      for (count, expected) in zip(counts, [10, 20, 40, 80]) {
        XCTAssertEqual(Double(count), Double(expected), accuracy: 2.5, "\(counts) seed \(seed)")
      }
    }
  }

  func testReportedWeightsAreBounded() {
    var random = SeededRandom(seed: 1)
    // The mean of the weights is 2; ten times that counts.
    let weights = [101.0] + Array(repeating: 1.0, count: 100)
    let mean = 201.0 / 101
    let scheduler = StrideScheduler(weights, limits: .reported, random: &random)
    let ratio = Double(scheduler.weights[0]) / Double(scheduler.weights[1])
    XCTAssertEqual(ratio, 10 * mean, accuracy: 0.05)
    let small = StrideScheduler([1e-9, 1, 1], limits: .reported, random: &random)
    XCTAssertEqual(Double(small.weights[0]) / Double(small.weights[1]), 0.01 * 2 / 3, accuracy: 0.0005)
  }

  func testStepsOfAChoiceAreBounded() {
    var random = SeededRandom(seed: 9)
    var weights = Array(repeating: 1.0, count: 10_000)
    weights[17] = 1e9
    let scheduler = StrideScheduler(weights, limits: .given, random: &random)
    // One of `full` in all rounds for the average index: that many steps for a choice.
    let average = Double(scheduler.weights.reduce(0) { $0 + UInt64($1) }) / 10_000
    XCTAssertGreaterThanOrEqual(Double(scheduler.weights.max() ?? 0) / average, 1)
    XCTAssertGreaterThanOrEqual(scheduler.weights.min() ?? 0, 1)
  }
}
