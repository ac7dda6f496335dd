import Connect
import ConnectChannels
import Foundation
import XCTest

@testable import connectrpc

final class LoadReportTests: XCTestCase {
  /// Some seconds of calls, of which those of the last second fail.
  private func series(seconds: Int) -> LoadSeries {
    var series = LoadSeries()
    for second in 1...seconds {
      var results = LoadResults()
      for _ in 0..<100 {
        let error = second == seconds ? ConnectError(code: .unavailable, message: "gone") : nil
        let end = LoadRun.End(error: error, requestBytes: 10, responseBytes: 20)
        results.note(end, latency: .milliseconds(second * 10))
      }
      series.add(results, at: .seconds(second), over: .seconds(1))
    }
    return series
  }

  /// What a server says cannot steer a terminal, and library names are those of options.
  func testMessagesOfServers() {
    var results = LoadResults()
    let error = ConnectError(code: .aborted, message: "a\u{1b}[2Jb\nc (maximumReceivedMessageSize)")
    results.note(LoadRun.End(error: error), latency: .milliseconds(1))
    var series = LoadSeries()
    series.add(results, at: .seconds(1), over: .seconds(1))
    let report = LoadReport(duration: .seconds(1), series: series, endpoints: [])
    XCTAssertTrue(report.text.contains("  (a\u{fffd}[2Jb; c)"), report.text)
  }

  func testText() {
    let report = LoadReport(duration: .seconds(4), series: self.series(seconds: 4), endpoints: [])
    let lines = report.text.split(separator: "\n").map(String.init)
    XCTAssertEqual(lines.first, "400 calls in 4.0 s, 100 a second")
    XCTAssertTrue(lines.contains("bodies: 4000 bytes sent, 8000 bytes received"), report.text)
    for start in ["  p50 ", "  p75 ", "  p90 ", "  p95 ", "  p99 ", "  p99.9 ", "  max "] {
      XCTAssertTrue(lines.contains { $0.hasPrefix(start) }, "\(start) in \(report.text)")
    }
    XCTAssertTrue(lines.contains { $0.hasPrefix("  ok ") && $0.hasSuffix("300") }, report.text)
    XCTAssertTrue(
      lines.contains { $0.hasPrefix("  unavailable ") && $0.hasSuffix("100  (gone)") },
      report.text
    )
    // Plots over time.
    XCTAssertTrue(lines.contains("  calls/s  ████  to 100"), report.text)
    XCTAssertTrue(lines.contains("  p50      ▃▅▇█  to 40.0 ms"), report.text)
    XCTAssertTrue(lines.contains { $0.hasPrefix("  p99      ▃▅▇█") }, report.text)
    XCTAssertTrue(lines.contains("  failed   ▁▁▁█  to 100"), report.text)
  }

  /// However long a load takes, its plots have at most 60 columns.
  func testPlotsOfLongLoads() throws {
    let report = LoadReport(duration: .seconds(1_000), series: self.series(seconds: 1_000), endpoints: [])
    let plot = try XCTUnwrap(report.text.split(separator: "\n").first { $0.hasPrefix("  p50      ") })
    let columns = plot.filter { "▁▂▃▄▅▆▇█".contains($0) }
    XCTAssertTrue((30...60).contains(columns.count), String(plot))
    XCTAssertEqual(columns.first, "▁")
    XCTAssertEqual(columns.last, "█")
  }

  func testJSON() throws {
    let report = LoadReport(duration: .seconds(2), series: self.series(seconds: 2), endpoints: [])
    let object = try XCTUnwrap(
      try JSONSerialization.jsonObject(with: Data(report.json().utf8)) as? [String: Any]
    )
    XCTAssertEqual(object["calls"] as? Int, 200)
    XCTAssertEqual(object["failures"] as? Int, 100)
    XCTAssertEqual(object["requestBytes"] as? Int, 2_000)
    XCTAssertEqual((object["series"] as? [Any])?.count, 2)
    XCTAssertEqual(object["codes"] as? [String: Int], ["ok": 100, "unavailable": 100])
  }
}
