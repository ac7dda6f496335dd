import ConnectChannels
import XCTest

@testable import ConnectSimulation

final class HistogramTests: XCTestCase {
  /// Against all values, sorted.
  func testPercentiles() {
    var random = SeededRandom(seed: 3)
    for scale in [10.0, 1_000, 1_000_000, 100_000_000] {
      var histogram = Histogram()
      var values: [Duration] = []
      for _ in 0..<5_000 {
        let value = Duration.microseconds(Int64(random.fraction() * scale))
        values.append(value)
        histogram.add(value)
      }
      values.sort()
      for part in [0.001, 0.5, 0.9, 0.99, 0.999, 1] {
        let exact = values[max(Int((5_000 * part).rounded(.up)), 1) - 1]
        let found = histogram.percentile(part) ?? .zero
        XCTAssertGreaterThanOrEqual(found, exact, "\(part) of \(scale)")
        XCTAssertLessThanOrEqual(found.seconds, exact.seconds * 1.016 + 1e-6, "\(part) of \(scale)")
      }
      XCTAssertEqual(histogram.largest, values.last)
    }
    XCTAssertNil(Histogram().percentile(0.5))
  }

  func testLatencies() {
    var random = SeededRandom(seed: 5)
    func sample(_ latency: Latency) -> [Double] {
      (0..<20_000).map { _ in latency.sample(&random).seconds }.sorted()
    }
    XCTAssertEqual(sample(.constant(.milliseconds(3)))[7], 0.003, accuracy: 1e-9)
    let uniform = sample(.uniform(.milliseconds(10) ... .milliseconds(20)))
    XCTAssertEqual(uniform[10_000], 0.015, accuracy: 0.0003)
    XCTAssertGreaterThanOrEqual(uniform[0], 0.01)
    XCTAssertLessThanOrEqual(uniform[19_999], 0.02)
    let exponential = sample(.exponential(mean: .milliseconds(10)))
    XCTAssertEqual(exponential.reduce(0, +) / 20_000, 0.01, accuracy: 0.0003)
    let logNormal = sample(.logNormal(median: .milliseconds(3), p99: .milliseconds(40)))
    XCTAssertEqual(logNormal[10_000], 0.003, accuracy: 0.0002)
    XCTAssertEqual(logNormal[19_800], 0.04, accuracy: 0.004)
    for latency in [
      Latency.logNormal(median: .zero, p99: .seconds(Int64.max)), .constant(.seconds(Int64.max)),
      .constant(.seconds(-5)), .exponential(mean: .seconds(Int64.max)),
    ] {
      for value in sample(latency) { XCTAssertTrue(value >= 0 && value < 3.2e9, "\(latency): \(value)") }
    }
  }
}
