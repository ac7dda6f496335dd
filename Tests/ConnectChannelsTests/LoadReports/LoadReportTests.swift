import XCTest

@testable import ConnectChannels

final class LoadReportTests: XCTestCase {
  private static func double(_ field: UInt8, _ value: Double) -> [UInt8] {
    [field << 3 | 1] + (0..<8).map { UInt8(truncatingIfNeeded: value.bitPattern >> ($0 * 8)) }
  }

  /// An entry of a map from string to double.
  private static func entry(_ field: UInt8, _ key: String, _ value: Double) -> [UInt8] {
    let content = [0x0a, UInt8(key.utf8.count)] + Array(key.utf8) + self.double(2, value)
    return [field << 3 | 2, UInt8(content.count)] + content
  }

  private static let everything: [UInt8] =
    double(1, 0.5) + double(2, 0.25) + [3 << 3, 0xac, 0x02] + entry(4, "cost", 7) + entry(5, "disk", 0.5)
    + double(6, 12.5) + double(7, 1.5) + entry(8, "x", -1) + double(9, 1.25)

  func testFields() throws {
    let report = try XCTUnwrap(LoadReport(decoding: Self.everything))
    XCTAssertEqual(report.cpuUtilization, 0.5)
    XCTAssertEqual(report.memoryUtilization, 0.25)
    XCTAssertEqual(report.queriesPerSecond, 12.5)
    XCTAssertEqual(report.errorsPerSecond, 1.5)
    XCTAssertEqual(report.applicationUtilization, 1.25)
    XCTAssertEqual(report.utilization, 1.25)
    XCTAssertEqual(LoadReport(decoding: []), LoadReport())
    XCTAssertEqual(
      LoadReport(decoding: [3 << 3, 0xac, 0x02])?.queriesPerSecond,
      300,
      "the deprecated field"
    )
    XCTAssertEqual(LoadReport(decoding: Self.double(1, 0.5))?.utilization, 0.5)
    XCTAssertEqual(LoadReport(decoding: Self.double(1, 0.5) + Self.double(1, 0.75))?.cpuUtilization, 0.75)
  }

  func testUnknownFieldsAreSkipped() {
    let unknown: [[UInt8]] = [
      [0x78, 1], [0x7d, 1, 2, 3, 4], [0x79, 1, 2, 3, 4, 5, 6, 7, 8], [0x7a, 2, 1, 2],
      [0xf8, 0xff, 0xff, 0xff, 0x0f, 1],
      // Known numbers with other wire types.
      [0x08, 1], [0x19, 1, 2, 3, 4, 5, 6, 7, 8], [0x32, 0],
    ]
    for bytes in unknown {
      XCTAssertEqual(LoadReport(decoding: bytes + Self.double(1, 0.5))?.cpuUtilization, 0.5, "\(bytes)")
    }
  }

  func testGarbageGivesNil() {
    let garbage: [[UInt8]] = [
      [0x00], [0x01], [0x0b], [0x0c], [0x0e], [0x0f], [0x09, 1, 2, 3], [0x18], [0x18, 0x80], [0x7a, 5, 1],
      [0x7a],
      [0x18] + Array(repeating: 0xff, count: 10), [0x18] + Array(repeating: 0xff, count: 9) + [2],
      [0x7a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
      Self.double(1, -0.5), Self.double(1, .nan), Self.double(6, .infinity), Self.double(9, -.infinity),
    ]
    for bytes in garbage { XCTAssertNil(LoadReport(decoding: bytes), "\(bytes)") }
    XCTAssertNotNil(LoadReport(decoding: [0x18] + Array(repeating: 0xff, count: 9) + [1]))
  }

  func testEveryCut() {
    // Only cuts between fields decode.
    let ends = [0, 9, 18, 21, 38, 55, 64, 73, 87, 96]
    for count in 0...Self.everything.count {
      let report = LoadReport(decoding: Array(Self.everything.prefix(count)))
      XCTAssertEqual(report != nil, ends.contains(count), "\(count)")
    }
  }

  func testRandomMutations() {
    var random = SeededRandom(seed: 8)
    var decoded = 0
    for _ in 0..<fuzzRounds {
      guard let report = LoadReport(decoding: random.mutated(Self.everything)) else { continue }
      decoded += 1
      XCTAssertTrue(report.queriesPerSecond.isFinite && report.utilization >= 0)
    }
    XCTAssertGreaterThan(decoded, fuzzRounds / 40)
  }
}
