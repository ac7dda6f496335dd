import XCTest

@testable import connectrpc

final class ListenAddressTests: XCTestCase {
  func testAddresses() {
    for (text, host, port) in [
      ("127.0.0.1:80", "127.0.0.1", 80), ("[::1]:0", "::1", 0), ("localhost:65535", "localhost", 65_535),
    ] {
      let address = ListenAddress(argument: text)
      XCTAssertEqual(address, ListenAddress(host: host, port: port), text)
      XCTAssertEqual(address?.description, text)
    }
  }

  func testBlanks() {
    XCTAssertEqual(ListenAddress(argument: " 127.0.0.1:80\t"), ListenAddress(host: "127.0.0.1", port: 80))
  }

  func testWhatIsNone() {
    for text in ["", "80", ":80", "::1:80", "a:65536", "a:-1", "a:", "a", "[]:1"] {
      XCTAssertNil(ListenAddress(argument: text), text)
    }
  }
}
