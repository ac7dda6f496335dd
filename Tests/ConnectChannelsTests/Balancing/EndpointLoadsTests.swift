import ConnectChannels
import XCTest

final class EndpointLoadsTests: XCTestCase {
  func testCallsAreCountedForEachEndpoint() {
    let loads = EndpointLoads()
    let id = EndpointID(3)
    XCTAssertEqual(loads.calls(of: id), 0)
    loads.callEnded(id)
    loads.callBegan(id)
    loads.callBegan(id)
    XCTAssertEqual(loads.calls(of: id), 2)
    XCTAssertEqual(loads.calls(of: EndpointID(2)), 0)
    loads.callEnded(id)
    XCTAssertEqual(loads.calls(of: id), 1)
  }

  func testSlotsOutOfRange() {
    XCTAssertEqual(EndpointID(slot: -1, generation: 1).slot, 0)
    XCTAssertEqual(EndpointID(slot: .min, generation: 1), EndpointID(slot: 0, generation: 1))
    XCTAssertEqual(EndpointID(slot: .max, generation: 1).slot, Int(UInt32.max))
    let loads = EndpointLoads()
    for slot in [1_000_000, Int.max] {
      let id = EndpointID(slot: slot, generation: 1)
      loads.callBegan(id)
      loads.record(LoadReport(cpuUtilization: 1, queriesPerSecond: 1), of: id, now: .seconds(Int64.max))
      XCTAssertEqual(loads.calls(of: id), 0)
      XCTAssertNil(loads.reports(of: id))
      loads.callEnded(id)
    }
  }

  func testASlotThatIsUsedAgainBeginsAtZero() {
    let loads = EndpointLoads()
    let old = EndpointID(slot: 0, generation: 1)
    let new = EndpointID(slot: 0, generation: 2)
    loads.callBegan(old)
    loads.record(LoadReport(cpuUtilization: 0.5, queriesPerSecond: 10), of: old, now: .zero)
    XCTAssertEqual(loads.calls(of: new), 0)
    XCTAssertNil(loads.reports(of: new))
    loads.callBegan(new)
    XCTAssertEqual(loads.calls(of: new), 1)
    // Late events of the endpoint that had the slot.
    loads.callEnded(old)
    loads.callBegan(old)
    loads.record(LoadReport(cpuUtilization: 0.5, queriesPerSecond: 10), of: old, now: .zero)
    XCTAssertEqual(loads.calls(of: new), 1)
    XCTAssertNil(loads.reports(of: new))
  }

  func testGivenLoads() {
    let (busy, idle) = (EndpointID(1), EndpointID(2))
    let report = LoadReport(cpuUtilization: 0.5, queriesPerSecond: 100)
    let loads = EndpointLoads(calls: [busy: 3, EndpointID(4): -1], reports: [busy: report], at: .seconds(2))
    XCTAssertEqual([busy, idle, EndpointID(4)].map(loads.calls), [3, 0, 0])
    XCTAssertEqual(loads.reports(of: busy)?.latest, report)
    XCTAssertEqual(loads.reports(of: busy)?.firstTime, .seconds(2))
    XCTAssertNil(loads.reports(of: idle))
  }

  func testReports() {
    let loads = EndpointLoads()
    let id = EndpointID(0)
    for useless in [
      LoadReport(), LoadReport(cpuUtilization: 1), LoadReport(queriesPerSecond: 1),
      LoadReport(cpuUtilization: .nan, queriesPerSecond: 1),
      LoadReport(cpuUtilization: 1, queriesPerSecond: -1),
    ] {
      loads.record(useless, of: id, now: .zero)
      XCTAssertNil(loads.reports(of: id))
    }
    let report = LoadReport(cpuUtilization: 0.5, queriesPerSecond: 100)
    loads.record(report, of: id, now: .seconds(1))
    loads.record(report, of: id, now: .seconds(5))
    XCTAssertEqual(loads.reports(of: id)?.firstTime, .seconds(1))
    XCTAssertEqual(loads.reports(of: id)?.latestTime, .seconds(5))
    loads.forgetReports(of: id)
    XCTAssertNil(loads.reports(of: id))
  }

  func testWeightOfAReport() {
    let table: [(LoadReport, penalty: Double, weight: Double)] = [
      (LoadReport(cpuUtilization: 0.5, queriesPerSecond: 100), 1, 200),
      (LoadReport(cpuUtilization: 0.5, applicationUtilization: 0.25, queriesPerSecond: 100), 1, 400),
      (LoadReport(cpuUtilization: 0.5, queriesPerSecond: 100, errorsPerSecond: 50), 1, 100),
      (LoadReport(cpuUtilization: 0.5, queriesPerSecond: 100, errorsPerSecond: 50), 3, 50),
      (LoadReport(cpuUtilization: 0.5, queriesPerSecond: 100, errorsPerSecond: 50), 0, 200),
      (LoadReport(cpuUtilization: 0.5, queriesPerSecond: 100, errorsPerSecond: -50), 1, 200),
      (LoadReport(cpuUtilization: .leastNonzeroMagnitude, queriesPerSecond: 1e308), 1, 0),
      (LoadReport(), 1, 0),
    ]
    for (report, penalty, weight) in table { XCTAssertEqual(report.weight(errorPenalty: penalty), weight) }
  }
}
