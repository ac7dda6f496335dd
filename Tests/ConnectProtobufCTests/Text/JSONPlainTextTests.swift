import XCTest

@testable import ConnectProtobufC

final class JSONPlainTextTests: XCTestCase {
  /// Every byte, at every place among others, from the lowest to the highest.
  func testWhereItEnds() {
    for filler: UInt8 in [0x20, 0x21, 0x41, 0x7e, 0x80, 0xff] {
      for place in 0..<20 {
        for byte in UInt8.min...UInt8.max {
          var bytes = [UInt8](repeating: filler, count: 20)
          bytes[place] = byte
          for escapingDelete in [true, false] {
            let isPlain = byte >= 0x20 && byte != 0x22 && byte != 0x5c && (byte != 0x7f || !escapingDelete)
            let count = bytes.withUnsafeBytes { JSONPlainText.count(in: $0, escapingDelete: escapingDelete) }
            XCTAssertEqual(count, isPlain ? 20 : place, "\(byte) at \(place) among \(filler)")
          }
        }
      }
    }
  }

  func testNothing() {
    XCTAssertEqual(
      JSONPlainText.count(in: UnsafeRawBufferPointer(start: nil, count: 0), escapingDelete: true),
      0
    )
  }
}
