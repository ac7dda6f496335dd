import TestSupport
import XCTest

@testable import connectrpc

final class LoadPlanTests: XCTestCase {
  func testAnEvenRate() {
    let plan = LoadPlan(kind: .open(rate: 100), duration: .seconds(10))
    XCTAssertEqual(plan.total(rate: 100), 1_000)
    XCTAssertEqual(plan.due(at: .zero, rate: 100), 1)
    XCTAssertEqual(plan.due(at: .seconds(1), rate: 100), 101)
    XCTAssertEqual(plan.due(at: .seconds(20), rate: 100), 1_000)
    XCTAssertEqual(plan.start(of: 0, rate: 100), .zero)
    XCTAssertEqual(plan.start(of: 100, rate: 100), .seconds(1))
    XCTAssertNil(LoadPlan(kind: .open(rate: 1)).total(rate: 1))
    for (rate, seconds, total) in [(1.0, 1, 1), (10, 1, 10), (1_000, 3, 3_000), (0.1, 1, 1), (3.3, 10, 33)] {
      let plan = LoadPlan(kind: .open(rate: rate), duration: .seconds(seconds))
      XCTAssertEqual(plan.total(rate: rate), total, "\(rate) for \(seconds) s")
    }
  }

  /// Each call is due when as many as it is are due.
  func testRampsAgreeWithThemselves() {
    var random = SeededGenerator()
    for _ in 0..<100 {
      let rate = Double.random(in: 1...5_000, using: &random)
      let plan = LoadPlan(
        kind: .open(rate: rate),
        ramp: .milliseconds(Int64.random(in: 0...20_000, using: &random))
      )
      var last = Duration.zero
      for number in 0..<200 {
        let time = plan.start(of: number, rate: rate)
        XCTAssertGreaterThanOrEqual(time, last)
        XCTAssertEqual(Double(plan.due(at: time, rate: rate)), Double(number + 1), accuracy: 1, "\(plan)")
        last = time
      }
    }
  }

  func testEnds() {
    let plan = LoadPlan(kind: .closed(callers: 2), duration: .seconds(1), count: 10)
    XCTAssertFalse(plan.isOver(at: .milliseconds(999), begun: 9))
    XCTAssertTrue(plan.isOver(at: .milliseconds(999), begun: 10))
    XCTAssertTrue(plan.isOver(at: .seconds(1), begun: 0))
    XCTAssertEqual(plan.total(rate: 100), 10)
  }

  func testProgress() {
    let timed = LoadPlan(kind: .closed(callers: 2), duration: .seconds(10))
    XCTAssertEqual(timed.progress(at: .milliseconds(3_100), ended: 120), "3 s of 10 s  120 calls")
    let counted = LoadPlan(kind: .open(rate: 5), count: 500)
    XCTAssertEqual(counted.progress(at: .seconds(3), ended: 120), "3 s  120 of 500 calls")
    let both = LoadPlan(kind: .open(rate: 5), duration: .milliseconds(2_500), count: 500)
    XCTAssertEqual(both.progress(at: .seconds(1), ended: 5), "1 s of 2.5 s  5 of 500 calls")
  }

  /// What comes after the last whole second is seen, too.
  func testTheRestIsInTheSeries() {
    func results(_ latency: Duration, _ count: Int) -> LoadResults {
      var results = LoadResults()
      for _ in 0..<count { results.note(.init(), latency: latency) }
      return results
    }
    var series = LoadSeries()
    series.add(results(.milliseconds(1), 10), at: .seconds(1), over: .seconds(1))
    series.addRest(results(.milliseconds(900), 10), at: .seconds(2))
    XCTAssertEqual(series.points.map(\.rate), [10, 10])
    XCTAssertEqual(series.points[1].median / .milliseconds(1), 900, accuracy: 1)
    series.addRest(results(.milliseconds(2_000), 10), at: .milliseconds(2_250))
    XCTAssertEqual(series.points.count, 2)
    XCTAssertEqual(series.points[1].rate, 16, accuracy: 0.01)
    XCTAssertEqual(series.points[1].p99 / .milliseconds(1), 2_000, accuracy: 2)
    XCTAssertEqual(series.total.count, 30)
  }

  func testPointsStayFew() {
    var series = LoadSeries()
    for second in 1...5_000 {
      var results = LoadResults()
      for _ in 0..<10 { results.note(.init(), latency: .milliseconds(second % 7 + 1)) }
      series.add(results, at: .seconds(second), over: .seconds(1))
    }
    XCTAssertLessThanOrEqual(series.points.count, 600)
    XCTAssertEqual(series.total.count, 50_000)
    XCTAssertEqual(series.points.last?.rate, 10)
    XCTAssertEqual(series.total.latency(at: 100) / .milliseconds(1), 7, accuracy: 0.01)
  }
}
