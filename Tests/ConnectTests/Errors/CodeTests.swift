import Connect
import XCTest

final class CodeTests: XCTestCase {
  func testNames() {
    XCTAssertEqual(Code.allCases.count, 17)
    for code in Code.allCases where code != .ok { XCTAssertEqual(Code(name: code.name), code) }
    XCTAssertEqual(Code.internalError.name, "internal")
    XCTAssertEqual(Code.canceled.name, "canceled")
    XCTAssertNil(Code(name: "ok"))
    XCTAssertNil(Code(name: "cancelled"))
    XCTAssertNil(Code(name: "Unknown"))
    XCTAssertNil(Code(name: ""))
  }

  func testHTTPStatus() {
    let table: [Int: Code] = [
      400: .internalError, 401: .unauthenticated, 403: .permissionDenied, 404: .unimplemented,
      429: .unavailable, 502: .unavailable, 503: .unavailable, 504: .unavailable,
    ]
    for status in 201...1000 {
      XCTAssertEqual(Code(httpStatus: status), table[status] ?? .unknown, "\(status)")
    }
  }

  func testHTTP2ErrorCodes() {
    let table: [UInt32: Code] = [
      0x7: .unavailable, 0x8: .canceled, 0xb: .resourceExhausted, 0xc: .permissionDenied,
    ]
    for error in UInt32(0)...32 {
      XCTAssertEqual(Code(http2ErrorCode: error), table[error] ?? .internalError)
    }
  }
}
