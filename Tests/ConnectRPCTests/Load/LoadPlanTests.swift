import TestSupport
import XCTest

@testable import connectrpc

final class LoadPlanTests: XCTestCase {
  func testAnEvenRate() {
    let plan = LoadPlan(kind: .open(rate: 100), duration: .seconds(10))
    XCTAssertEqual(plan.begun(by: .zero, rate: 100), 0)
    XCTAssertEqual(plan.begun(by: .seconds(1), rate: 100), 100)
    XCTAssertEqual(plan.begun(by: .seconds(20), rate: 100), 1_000)
    XCTAssertEqual(plan.start(of: 99, rate: 100), .seconds(1))
  }

  /// Each call begins when as many as it is have begun.
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
        XCTAssertEqual(Double(plan.begun(by: time, rate: rate)), Double(number + 1), accuracy: 1, "\(plan)")
        last = time
      }
    }
  }

  func testEnds() {
    let plan = LoadPlan(kind: .closed(callers: 2), duration: .seconds(1), count: 10)
    XCTAssertFalse(plan.isOver(at: .milliseconds(999), begun: 9))
    XCTAssertTrue(plan.isOver(at: .milliseconds(999), begun: 10))
    XCTAssertTrue(plan.isOver(at: .seconds(1), begun: 0))
    XCTAssertEqual(plan.begun(by: .seconds(1), rate: 100), 10)
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
