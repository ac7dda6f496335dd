import Foundation
import XCTest

@testable import ConnectSimulation

/// Traces of any size take about the same memory. `make properties` reads 200 MB.
final class TraceMemoryTests: XCTestCase {
  func testMemoryIsBounded() throws {
    let isLong = ProcessInfo.processInfo.environment["CONNECT_PROPERTY_ROUNDS"] != nil
    let size = isLong ? 200 << 20 : 2 << 20
    var reader = TraceReader()
    var (written, number) = (0, 0)
    var start: Int?
    while written < size {
      var lines = ""
      for _ in 0..<500 {
        number += 1
        // More methods and servers than are counted on their own, and each second another.
        lines +=
          #"{"time":\#(1_795_766_400 + number),"method":"/a.B/M\#(number % 3_000)","duration_ms":\#(number % 97),"code":0,"#
        lines += #""server":"10.0.\#(number % 50).\#(number % 200):80"}"# + "\n"
      }
      written += lines.utf8.count
      try reader.read(Array(lines.utf8))
      if written > size / 2, start == nil { start = Self.residentBytes }
    }
    let end = Self.residentBytes
    let trace = try reader.finish()
    XCTAssertEqual(trace.total.calls, number)
    XCTAssertEqual(trace.methods.count, TrafficTrace.maximumMethods + 1)
    XCTAssertTrue(trace.hasTooManyPlaces)
    XCTAssertLessThanOrEqual(trace.timeline.parts.count, Timeline.maximumCount)
    XCTAssertEqual(trace.timeline.calls, number)
    // The second half needs no more than tables that grow.
    XCTAssertLessThan(end - (start ?? 0), 32 << 20)
  }

  /// Bytes without a line's end, and a span that does not end, are not kept.
  func testEndlessLines() throws {
    for beginning in [#"{"method":""#, #"{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":""#] {
      var reader = TraceReader()
      try reader.read(Array(beginning.utf8))
      let start = Self.residentBytes
      let bytes = Array(repeating: UInt8(ascii: "x"), count: 1 << 20)
      for _ in 0..<(beginning.contains("spans") ? 17 : 64) { try reader.read(bytes) }
      XCTAssertLessThan(Self.residentBytes - start, 48 << 20)
      XCTAssertThrowsError(try reader.finish())
    }
  }

  private static var residentBytes: Int {
    let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
    return (text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 4_096
  }
}
