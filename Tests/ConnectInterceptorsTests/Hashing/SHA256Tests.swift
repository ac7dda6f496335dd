import NIOCore
import XCTest

@testable import ConnectInterceptors

/// The examples of NIST, <https://csrc.nist.gov/projects/cryptographic-standards-and-guidelines/example-values>, and
/// messages of all lengths around the size of a block.
final class SHA256Tests: XCTestCase {
  func testExamples() {
    let examples = [
      ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
      ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
      (
        "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
      ),
      (
        "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
        "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"
      ),
    ]
    for (text, hash) in examples { XCTAssertEqual(SHA256.hexadecimal(ByteBuffer(string: text)), hash, text) }
  }

  func testAMillionLetters() {
    let text = ByteBuffer(repeating: UInt8(ascii: "a"), count: 1_000_000)
    XCTAssertEqual(
      SHA256.hexadecimal(text),
      "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
    )
  }

  /// The hash of the hashes of 0 to 300 bytes, made with Python's hashlib.
  func testAllLengths() {
    var hashes = ""
    for length in 0...300 {
      hashes += SHA256.hexadecimal(ByteBuffer(bytes: (0..<length).map { UInt8(truncatingIfNeeded: $0 * 7) }))
    }
    XCTAssertEqual(
      SHA256.hexadecimal(ByteBuffer(string: hashes)),
      "917dfe241fcf4d27cf00582a4b7cbc1f5bb92f4298d46d8d986f7cda814596c6"
    )
  }

  func testSlice() throws {
    var buffer = ByteBuffer(string: "xabc")
    buffer.moveReaderIndex(forwardBy: 1)
    XCTAssertEqual(SHA256.hexadecimal(buffer), SHA256.hexadecimal(ByteBuffer(string: "abc")))
  }
}
