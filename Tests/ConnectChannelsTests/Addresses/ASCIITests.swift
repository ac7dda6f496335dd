import XCTest

@testable import ConnectChannels

final class ASCIITests: XCTestCase {
  /// Eight bytes are looked at together: the byte is found at each place, and no other byte is taken for it.
  func testAByteIsFoundAtEachPlace() {
    let wanted = UInt8(ascii: "?")
    for length in 0...20 {
      let text = String(repeating: "a", count: length)
      XCTAssertFalse(ASCII.contains(wanted, in: text), "\(length)")
      for place in 0..<length {
        for byte in ["?", ">", "@", "\u{0}", "\u{7f}"] {
          let other = text.prefix(place) + byte + text.dropFirst(place + 1)
          XCTAssertEqual(
            ASCII.contains(wanted, in: String(other)),
            byte == "?",
            "\(byte) at \(place) of \(length)"
          )
        }
      }
    }
    XCTAssertFalse(ASCII.contains(wanted, in: "/pkg.Sérvice/Gét¿¿¿¿¿¿¿"))
    XCTAssertTrue(ASCII.contains(wanted, in: "/pkg.Sérvice/Gét¿¿?¿"))
  }
}
