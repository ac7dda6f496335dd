import NIOCore
import XCTest

@testable import ConnectInterceptors

/// The test cases of RFC 4231, section 4, and hashes in pieces.
final class HMACTests: XCTestCase {
  func testVectors() {
    let repeated = { (byte: UInt8, count: Int) in [UInt8](repeating: byte, count: count) }
    let large = Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8)
    let both = Array(
      "This is a test using a larger than block-size key and a larger than block-size data. The key needs to be hashed before being used by the HMAC algorithm."
        .utf8
    )
    let cases: [(key: [UInt8], data: [UInt8], code: String)] = [
      (
        repeated(0x0b, 20), Array("Hi There".utf8),
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
      ),
      (
        Array("Jefe".utf8), Array("what do ya want for nothing?".utf8),
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
      ),
      (
        repeated(0xaa, 20), repeated(0xdd, 50),
        "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"
      ),
      (
        Array(1...25), repeated(0xcd, 50),
        "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"
      ),
      (
        repeated(0xaa, 131), large, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
      ),
      (
        repeated(0xaa, 131), both, "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"
      ),
    ]
    for (key, data, code) in cases { XCTAssertEqual(Hexadecimal.text(HMAC.code(of: data, key: key)), code) }
    // Case 5 is cut to 128 bits.
    let cut = HMAC.code(of: Array("Test With Truncation".utf8), key: repeated(0x0c, 20)).prefix(16)
    XCTAssertEqual(Hexadecimal.text(cut), "a3b6167473100ee06e0c796c2955552b")
  }

  func testPiecesOfAllSizes() {
    let bytes = (0..<400).map { UInt8(truncatingIfNeeded: $0 * 31) }
    let whole = SHA256.digest(ByteBuffer(bytes: bytes))
    for size in 1...200 {
      var hash = SHA256()
      for start in stride(from: 0, to: bytes.count, by: size) {
        hash.update(ByteBuffer(bytes: bytes[start..<min(start + size, bytes.count)]))
      }
      XCTAssertEqual(hash.digest(), whole, "pieces of \(size) bytes")
    }
  }

  func testDates() {
    XCTAssertEqual(HTTPDate.text(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT")
    XCTAssertEqual(HTTPDate.text(0), "Thu, 01 Jan 1970 00:00:00 GMT")
    XCTAssertEqual(HTTPDate.text(951_782_399), "Mon, 28 Feb 2000 23:59:59 GMT")
    XCTAssertEqual(HTTPDate.text(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT")
    XCTAssertEqual(HTTPDate.text(.max), "Fri, 31 Dec 9999 23:59:59 GMT")
    XCTAssertEqual(HTTPDate.text(.min), "Thu, 01 Jan 1970 00:00:00 GMT")
    for seconds in stride(from: Int64(0), to: 10_000_000_000, by: 7_777_777) {
      XCTAssertEqual(RetryAfterDate.seconds(HTTPDate.text(seconds)), seconds)
    }
  }
}
