import NIOCore
import SwiftProtobuf
import TestSupport
import XCTest

@testable import Connect

final class GRPCStatusTests: XCTestCase {
  /// A `google.rpc.Status` with one detail, in protobuf.
  private func status(code: UInt8, message: String, typeURL: String, value: [UInt8]) -> ByteBuffer {
    func field(_ number: UInt8, _ bytes: [UInt8]) -> [UInt8] {
      [number << 3 | 2, UInt8(bytes.count)] + bytes
    }
    let any = field(1, Array(typeURL.utf8)) + field(2, value)
    return ByteBuffer(bytes: [8, code] + field(2, Array(message.utf8)) + field(3, any))
  }

  private func text(_ bytes: ByteBuffer, isPadded: Bool = false) -> String {
    String(buffer: Base64.encode(bytes, alphabet: .standard, isPadded: isPadded))
  }

  func testSuccess() {
    for text in ["0", "00"] {
      let status = GRPCStatus(["grpc-status": [text], "grpc-message": ["ignored"]])
      XCTAssertNotNil(status)
      XCTAssertNil(status?.error)
    }
  }

  func testNoStatus() {
    XCTAssertNil(GRPCStatus([:]))
    XCTAssertNil(GRPCStatus(["grpc-message": ["x"]]))
  }

  func testEveryCode() {
    for code in Code.allCases where code != .ok {
      let error = GRPCStatus(["grpc-status": ["\(code.rawValue)"], "grpc-message": ["oops"]])?.error
      XCTAssertEqual(error?.code, code)
      XCTAssertEqual(error?.message, "oops")
      XCTAssertEqual(error?.details, [])
    }
  }

  func testCodesThatAreNone() {
    for text in ["17", "-1", "+5", "five", "", "1.0", "99999999999999999999"] {
      let error = GRPCStatus(["grpc-status": [text]])?.error
      XCTAssertEqual(error?.code, .unknown, text)
      XCTAssertEqual(error?.message, "response has unknown grpc-status '\(text)'")
      let named = GRPCStatus(["grpc-status": [text], "grpc-message": ["oops"]])?.error
      XCTAssertEqual(named?.message, "oops")
    }
  }

  func testMessages() {
    func message(_ text: String) -> String? {
      GRPCStatus(["grpc-status": ["5"], "grpc-message": [text]])?.error?.message
    }
    XCTAssertEqual(message("a%20b%25"), "a b%")
    XCTAssertEqual(message("%E2%98%ba"), "☺")
    // Bad escapes pass through.
    for bad in ["%", "%1", "%zz", "100%", "a%2", "%%", "%é"] { XCTAssertEqual(message(bad), bad) }
    XCTAssertEqual(message("%zz%20"), "%zz ")
    XCTAssertEqual(message("%ff"), "\u{fffd}")
    XCTAssertEqual(message(""), "")
    XCTAssertNil(GRPCStatus(["grpc-status": ["5"]])?.error?.message)
  }

  func testDetails() throws {
    let value: [UInt8] = [0, 1, 2, 255]
    let bytes = self.status(code: 5, message: "full ü", typeURL: "type.googleapis.com/a.B", value: value)
    for isPadded in [true, false] {
      for rest in ["", ",AAEC"] {
        let error = GRPCStatus([
          "grpc-status": ["7"], "grpc-message": ["short"],
          "grpc-status-details-bin": [self.text(bytes, isPadded: isPadded) + rest],
        ])?.error
        XCTAssertEqual(error?.code, .notFound)
        XCTAssertEqual(error?.message, "full ü")
        XCTAssertEqual(error?.details, [.init(type: "a.B", value: ByteBuffer(bytes: value))])
      }
    }
    let any = try Google_Protobuf_Any(message: Google_Protobuf_Duration(seconds: 5))
    let typed = self.status(code: 5, message: "", typeURL: any.typeURL, value: Array(any.value))
    let error = GRPCStatus(["grpc-status": ["5"], "grpc-status-details-bin": [self.text(typed)]])?.error
    XCTAssertEqual(error?.unpackedDetails(Google_Protobuf_Duration.self).first?.seconds, 5)
  }

  func testTheCodeInDetailsIsPreferredIfItIsOne() {
    func code(_ code: UInt8) -> ConnectError? {
      let bytes = self.status(code: code, message: "", typeURL: "a.B", value: [])
      return GRPCStatus([
        "grpc-status": ["7"], "grpc-message": ["short"], "grpc-status-details-bin": [self.text(bytes)],
      ])?.error
    }
    XCTAssertEqual(code(10)?.code, .aborted)
    XCTAssertEqual(code(10)?.message, "short")
    for bad in [0, 17, 99] as [UInt8] {
      XCTAssertEqual(code(bad)?.code, .permissionDenied)
      XCTAssertEqual(code(bad)?.details.count, 1)
    }
    // Success is success.
    let bytes = self.status(code: 5, message: "", typeURL: "a.B", value: [])
    let success = GRPCStatus(["grpc-status": ["0"], "grpc-status-details-bin": [self.text(bytes)]])
    XCTAssertNotNil(success)
    XCTAssertNil(success?.error)
  }

  func testDetailsThatDoNotDecode() {
    for text in ["!", "A", self.text(ByteBuffer(bytes: [8])), self.text(ByteBuffer(bytes: [0x12, 9, 1]))] {
      let error = GRPCStatus([
        "grpc-status": ["7"], "grpc-message": ["short"], "grpc-status-details-bin": [text],
      ])?.error
      XCTAssertEqual(error?.code, .permissionDenied)
      XCTAssertEqual(error?.message, "short")
      XCTAssertEqual(error?.details, [])
    }
  }

  func testUnknownFieldsAreSkipped() {
    // A varint, eight bytes, four bytes, a string, each with a field number that Status does not have.
    let unknown: [UInt8] = [0x50, 0xff, 1, 0x51, 1, 2, 3, 4, 5, 6, 7, 8, 0x55, 1, 2, 3, 4, 0x52, 1, 9]
    let message = GRPCStatusMessage(ByteBuffer(bytes: unknown + [8, 3] + unknown))
    XCTAssertEqual(message?.code, 3)
    XCTAssertNil(GRPCStatusMessage(ByteBuffer(bytes: [0x53])))
    XCTAssertNil(GRPCStatusMessage(ByteBuffer(bytes: [0x00, 1])))
    XCTAssertNil(GRPCStatusMessage(ByteBuffer(bytes: [8] + Array(repeating: 0xff, count: 20))))
    XCTAssertNil(
      GRPCStatusMessage(ByteBuffer(bytes: [0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]))
    )
    XCTAssertEqual(
      GRPCStatusMessage(ByteBuffer(bytes: [8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]))?.code,
      -1
    )
  }

  func testRandomBytesNeverTrap() {
    var random = SeededGenerator()
    for _ in 0..<20_000 {
      let count = Int.random(in: 0..<40, using: &random)
      let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
      _ = GRPCStatusMessage(ByteBuffer(bytes: bytes))
      _ = PercentEncoding.decode(String(decoding: bytes, as: UTF8.self))
      _ = try? GRPCWebTrailers.parse(ByteBuffer(bytes: bytes))
    }
  }
}
