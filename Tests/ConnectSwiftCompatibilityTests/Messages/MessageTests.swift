import ConnectSwiftCompatibility
import Foundation
import LoopbackServer
import XCTest

final class MessageTests: XCTestCase {
  func testHeadersKeepTheValuesOfEachName() {
    let headers = Connect::Headers(["X-A": ["1", "2"], "b": ["3"], "c": []])
    XCTAssertEqual(headers, ["x-a": ["1", "2"], "b": ["3"]])
    XCTAssertEqual(headers.dictionary, ["x-a": ["1", "2"], "b": ["3"]])
  }

  func testErrorKeepsWhatItsFormDoesNotHave() {
    var native = Connect::ConnectError(code: .aborted, message: "m", metadata: ["a": ["b"]], httpStatus: 409)
    native.isUnsent = true
    let error = ConnectError(native)
    XCTAssertEqual(error.code, .aborted)
    XCTAssertEqual(error.message, "m")
    XCTAssertEqual(error.metadata, ["a": ["b"]])
    XCTAssertEqual(error.native.httpStatus, 409)
    XCTAssertTrue(error.native.isUnsent)
    XCTAssertEqual("\(error)", "aborted: m")
    XCTAssertEqual(error.localizedDescription, "aborted: m")
  }

  func testDetails() throws {
    let info = Connect_Test_V1_ErrorInfo.with { $0.reason = "why" }
    let error = ConnectError(
      code: .internalError,
      message: nil,
      exception: nil,
      details: [
        .init(type: "connect.test.v1.ErrorInfo", payload: try info.serializedData()),
        .init(type: "connect.test.v1.ErrorInfo", payload: Data([0xff])),
        .init(type: "other", payload: nil),
      ],
      metadata: [:]
    )
    let unpacked: [Connect_Test_V1_ErrorInfo] = error.unpackedDetails()
    XCTAssertEqual(unpacked, [info])
    XCTAssertEqual(error.details.map(\.type).last, "other")
  }

  func testErrorFromJSON() {
    let json = #"{"code":"not_found","message":"m","details":[{"type":"t","value":"AQI"}]}"#
    let error = ConnectError.from(
      code: .unknown,
      headers: ["X-A": ["1"], "X-B": ["2"]],
      trailers: ["x-a": ["3"]],
      source: Data(json.utf8)
    )
    XCTAssertEqual(error.code, .notFound)
    XCTAssertEqual(error.message, "m")
    XCTAssertEqual(error.details.map(\.payload), [Data([1, 2])])
    XCTAssertEqual(error.metadata, ["x-a": ["3"], "x-b": ["2"]])
    let text = ConnectError.from(code: .unavailable, headers: nil, trailers: nil, source: Data("down".utf8))
    XCTAssertEqual(text.code, .unavailable)
    XCTAssertEqual(text.message, "down")
    XCTAssertNotNil(text.exception)
    XCTAssertEqual(ConnectError.from(code: .aborted, headers: nil, trailers: nil, source: nil).code, .aborted)
    let odd = ConnectError.from(
      code: .aborted,
      headers: nil,
      trailers: nil,
      source: Data(#"{"code":"x"}"#.utf8)
    )
    XCTAssertEqual(odd.code, .aborted)
  }

  func testCodes() {
    XCTAssertEqual(Code.fromName("ok"), .ok)
    XCTAssertEqual(Code.fromName("internal"), .internalError)
    XCTAssertNil(Code.fromName("fine"))
    XCTAssertEqual(Code.fromHTTPStatus(429), .unavailable)
  }

  func testJSONOptions() {
    XCTAssertTrue(JSONCodec(alwaysEncodeEnumsAsInts: true).options.alwaysPrintEnumsAsInts)
    XCTAssertTrue(JSONCodec(preserveProtobufFieldNames: true).options.preserveProtoFieldNames)
    XCTAssertFalse(JSONCodec().options.alwaysPrintEnumsAsInts)
  }

  func testResponseMessage() {
    let failed = ResponseMessage<Connect_Test_V1_EchoResponse>(
      headers: ["a": ["1"]],
      result: .failure(.canceled()),
      trailers: ["b": ["2"]]
    )
    XCTAssertEqual(failed.code, .canceled)
    XCTAssertNil(failed.message)
    XCTAssertEqual(failed.headers, ["a": ["1"]])
    XCTAssertEqual(failed.trailers, ["b": ["2"]])
    XCTAssertThrowsError(try failed.result.get()) { XCTAssertTrue($0 is ConnectError) }
    let good = ResponseMessage<Connect_Test_V1_EchoResponse>(result: .success(.init()))
    XCTAssertEqual(good.code, .ok)
    XCTAssertNil(good.error)
  }

  func testEqualityOfResults() {
    typealias Result = StreamResult<Int>
    let ends: [Result] = [
      .complete(code: .ok, error: nil, trailers: nil),
      .complete(code: .ok, error: nil, trailers: ["a": ["b"]]),
      .complete(code: .aborted, error: ConnectError.canceled(), trailers: nil),
      .headers([:]), .headers(["a": ["b"]]), .message(1), .message(2),
    ]
    for (left, one) in ends.enumerated() {
      for (right, other) in ends.enumerated() {
        XCTAssertEqual(one == other, left == right, "\(one) \(other)")
      }
    }
  }

  /// A new request, outside of any call.
  func testRequest() throws {
    let request = HTTPRequest<Data?>(
      url: try XCTUnwrap(URL(string: "https://host/path")),
      headers: ["a": ["b"]],
      message: nil,
      method: .get,
      trailers: nil,
      idempotencyLevel: .noSideEffects
    )
    XCTAssertEqual(request.url.path, "/path")
    XCTAssertEqual(request.headers, ["a": ["b"]])
    XCTAssertNil(request.message)
    XCTAssertEqual(request.method.rawValue, "GET")
    XCTAssertNil(request.trailers)
    XCTAssertEqual(request.idempotencyLevel, .noSideEffects)
  }

  func testMetadataOfStubs() {
    let method = Connect_Test_V1_TestServiceClient.Metadata.Methods.count
    XCTAssertEqual(method.path, "connect.test.v1.TestService/Count")
    XCTAssertEqual(method.type, .serverStream)
    // The names with the module in front are connect-swift's, too.
    let headers: Connect.Headers = ["a": ["b"]]
    XCTAssertEqual(headers["a"]?.first, "b")
  }
}
