import Connect
import XCTest

@testable import ConnectSimulation

/// Lines as servers write them with zap, logrus and slog, among others.
final class ApplicationLogTests: XCTestCase {
  /// go-grpc-middleware says when calls begin, too; the peer of a server is its client, and whole seconds are no times.
  func testInterceptorsOfGo() throws {
    var lines: [String] = []
    for number in 0..<10 {
      let common =
        #""grpc.component":"server","grpc.service":"a.B","grpc.method":"C","peer.address":"10.0.0.9:\#(30_000 + number)","#
        + #""grpc.start_time":"2026-11-27T08:00:00Z""#
      lines += [
        #"{"level":"info","ts":1795766400.25,"msg":"started call",\#(common),"grpc.time_ms":"0.01"}"#,
        #"{"level":"info","ts":1795766400.5,"msg":"cache refreshed","took":"3s"}"#,
        #"{"level":"info","ts":1795766400.75,"msg":"finished call",\#(common),"grpc.code":"OK","grpc.time_ms":"500"}"#,
      ]
    }
    let trace = try TrafficTrace(text: lines.joined(separator: "\n"))
    XCTAssertEqual(trace.total.calls, 10)
    XCTAssertEqual(trace.mistakes.first, [])
    XCTAssertEqual(trace.otherLines, 20)
    XCTAssertEqual(trace.servers.count, 0)
    let call = try LogEntry(JSONParser.parse(lines[2])).call.get()
    XCTAssertEqual(call.start ?? 0, 1_795_766_400.25, accuracy: 1e-3)
  }

  func testLogsWithoutCalls() {
    XCTAssertThrowsError(try TrafficTrace(text: #"{"level":"info","msg":"listening"}"#)) { error in
      XCTAssertTrue("\(error)".contains("there is no call in it"), "\(error)")
      XCTAssertTrue("\(error)".contains("trace:1: there is no method"), "\(error)")
    }
  }

  /// zap writes durations in seconds, slog in nanoseconds: neither says so.
  func testUnits() throws {
    func trace(_ duration: String, _ unit: Duration = .milliseconds(1)) throws -> TrafficTrace {
      var reader = TraceReader(unit: unit)
      try reader.read(
        #"{"time":1795766400,"method":"/a.B/C","duration":\#(duration),"code":"OK"}"#.utf8
      )
      return try reader.finish()
    }
    for (duration, unit) in [("0.02", Duration.seconds(1)), ("20000000", .nanoseconds(1))] {
      let notes = FittedService(try trace(duration)).notes
      XCTAssertTrue(notes.contains { $0.hasPrefix("WARNING: durations have no unit") }, "\(notes)")
      let right = try trace(duration, unit)
      XCTAssertEqual(right.total.percentile(0.5)?.seconds ?? 0, 0.02, accuracy: 0.001)
      XCTAssertFalse(FittedService(right).notes.contains { $0.hasPrefix("WARNING") })
    }
    // A unit of its own is not changed.
    XCTAssertEqual(
      try trace("\"20ms\"", .seconds(1)).total.percentile(0.5)?.seconds ?? 0,
      0.02,
      accuracy: 0.001
    )
  }

  /// One call from another time does not make all others wrong, and twenty do.
  func testClocksThatJump() throws {
    func line(_ time: Double) -> String {
      #"{"time":\#(time),"method":"/a.B/C","duration_ms":1,"code":0}"#
    }
    var lines = (0..<100).map { line(1_795_766_400 + Double($0)) }
    lines[5] = line(4e9)
    let trace = try TrafficTrace(text: lines.joined(separator: "\n"), named: "log")
    XCTAssertEqual(trace.total.calls, 99)
    XCTAssertEqual(trace.mistakes.first, ["log:6: the clock jumps ahead by 2,204,233,596 s"])
    XCTAssertEqual(trace.seconds, 99, accuracy: 0.1)
    // Another log follows, of another year.
    let older = try TrafficTrace(
      text: (lines + (0..<100).map { line(1_600_000_000 + Double($0)) }).joined(separator: "\n")
    )
    XCTAssertEqual(older.total.calls, 179)
    let notes = FittedService(older).notes
    XCTAssertTrue(notes.contains { $0.contains("is their mean over all of it") }, "\(notes)")
  }

  func testFiguresThatNoClockHas() throws {
    let good = #"{"time":1795766400,"method":"/a.B/C","duration_ms":1,"code":0}"#
    let times = ["1e400", "-1e18", "\"nan\"", "1e300", "-1", "\"inf\"", "9e307"]
    let durations = ["\"NaN\"", "1e400", "-1", "\"-inf\"", "3.2e13", "1e300"]
    let methods = ["/a.B/C\\u0000", "/a.B/Ü", "/a.B/\\ud800", "/a\\tb"]
    let lines =
      times.map { #"{"time":\#($0),"method":"/a.B/C","duration_ms":1,"code":0}"# }
      + durations.map { #"{"time":1795766400,"method":"/a.B/C","duration_ms":\#($0),"code":0}"# }
      + methods.map { #"{"time":1795766400,"method":"\#($0)","duration_ms":1,"code":0}"# }
    let trace = try TrafficTrace(
      text: (lines + Array(repeating: good, count: 20)).joined(separator: "\n")
    )
    XCTAssertEqual(trace.total.calls, 20)
    XCTAssertEqual(trace.mistakes.count, lines.count)
    for value in [Double.infinity, -.infinity, .nan, 1e300, -1e300, 1e15] {
      XCTAssertFalse(Plot.number(value).isEmpty)
    }
  }
}
