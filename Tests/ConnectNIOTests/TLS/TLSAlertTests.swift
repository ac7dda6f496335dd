import XCTest

@testable import ConnectNIO

final class TLSAlertTests: XCTestCase {
  /// RFC 8446, section 6.2: what a repetition does not change.
  func testAlertsThatNoRepetitionChanges() {
    let final: Set<UInt8> = [40, 42, 43, 44, 45, 46, 48, 49, 51, 70, 71, 112, 116, 120]
    for alert in 0...UInt8.max {
      XCTAssertEqual(TLSAlert.isFinal(alert: alert), final.contains(alert), "\(alert)")
    }
  }
}
