import NIOCore
import XCTest

@testable import Connect

final class ConnectGETQueryTests: XCTestCase {
  private func query(_ bytes: [UInt8], codec: String = "proto", encoding: String? = nil) -> String {
    ConnectGETQuery.make(message: ByteBuffer(bytes: bytes), codecName: codec, encoding: encoding)
  }

  func testBinary() {
    XCTAssertEqual(self.query([]), "connect=v1&base64=1&encoding=proto&message=")
    XCTAssertEqual(self.query([251, 255, 191, 0]), "connect=v1&base64=1&encoding=proto&message=-_-_AA")
  }

  func testJSON() {
    XCTAssertEqual(
      self.query(Array(#"{"a": "ü+/~._-"}"#.utf8), codec: "json"),
      "connect=v1&encoding=json&message=%7B%22a%22%3A%20%22%C3%BC%2B%2F~._-%22%7D"
    )
  }

  func testCompressed() {
    XCTAssertEqual(
      self.query([1, 2], encoding: "gzip"),
      "connect=v1&base64=1&compression=gzip&encoding=proto&message=AQI"
    )
    XCTAssertEqual(
      self.query([1, 2], codec: "json", encoding: "gzip"),
      "connect=v1&base64=1&compression=gzip&encoding=json&message=AQI"
    )
    XCTAssertEqual(
      self.query([], codec: "a+b", encoding: "x y"),
      "connect=v1&base64=1&compression=x%20y&encoding=a%2Bb&message="
    )
  }
}
