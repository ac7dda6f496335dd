import NIOCore
import SwiftProtobuf
import XCTest

@testable import Connect

final class ErrorDetailTests: XCTestCase {
  private let duration = Google_Protobuf_Duration(seconds: 30, nanos: 1)
  private let mask = Google_Protobuf_FieldMask(protoPaths: "a", "b.c")

  func testUnpacksByType() throws {
    let error = ConnectError(
      code: .unavailable,
      details: [
        try .init(self.duration), try .init(self.mask), try .init(Google_Protobuf_Duration(seconds: 2)),
      ]
    )
    XCTAssertEqual(
      error.details.map(\.type),
      [
        "google.protobuf.Duration", "google.protobuf.FieldMask", "google.protobuf.Duration",
      ]
    )
    XCTAssertEqual(
      error.unpackedDetails(Google_Protobuf_Duration.self),
      [
        self.duration, Google_Protobuf_Duration(seconds: 2),
      ]
    )
    let masks: [Google_Protobuf_FieldMask] = error.unpackedDetails()
    XCTAssertEqual(masks, [self.mask])
    XCTAssertEqual(error.unpackedDetails(Google_Protobuf_Empty.self), [])
  }

  func testLeavesOutWhatDoesNotDecode() {
    let error = ConnectError(
      code: .unknown,
      details: [
        .init(type: "google.protobuf.Duration", value: ByteBuffer(bytes: [0xff])),
        .init(type: "google.protobuf.Duration", value: ByteBuffer()),
        .init(type: "google.protobuf.Empty", value: ByteBuffer()),
      ]
    )
    XCTAssertEqual(error.unpackedDetails(Google_Protobuf_Duration.self), [Google_Protobuf_Duration()])
  }

  func testDetailsFromTheWire() throws {
    let body = #"""
      {"code": "unavailable", "message": "overloaded: back off and retry", "details": [
        {"type": "google.protobuf.Duration", "value": "CB4QAQ", "debug": {"any": ["thing"]}, "other": 1},
        {"type": "type.googleapis.com/google.protobuf.Duration", "value": "CAI="},
        {"type": "google.protobuf.Duration", "value": "!"},
        {"type": "google.protobuf.Duration", "value": 5}, {"value": "CAI"}, null, 7, "x", [],
        {"type": "connectrpc.test.Unknown", "value": ""}
      ]}
      """#
    let json = try XCTUnwrap(ConnectErrorJSON.parse(ByteBuffer(string: body)))
    let error = json.error(fallback: .unknown)
    XCTAssertEqual(error.code, .unavailable)
    XCTAssertEqual(error.message, "overloaded: back off and retry")
    XCTAssertEqual(error.unpackedDetails(), [self.duration, Google_Protobuf_Duration(seconds: 2)])
    XCTAssertEqual(error.details.map(\.type).last, "connectrpc.test.Unknown")
    XCTAssertEqual(error.details.count, 3)
  }
}
