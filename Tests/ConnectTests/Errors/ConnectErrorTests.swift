import Connect
import Foundation
import NIOCore
import XCTest

final class ConnectErrorTests: XCTestCase {
  private struct Cause: Error, CustomStringConvertible, CustomDebugStringConvertible {
    let description = "the cause"
    let debugDescription = "the cause at /build/ssl/record.cc:231"
  }

  // MARK: Copies

  func testCopiesAreTheirOwn() {
    let error = ConnectError(code: .aborted, message: "no", metadata: ["a": ["1"]])
    var copy = error
    copy.message = "yes"
    copy.metadata["a"] = ["2"]
    copy.details.append(ConnectError.Detail(type: "t", value: ByteBuffer()))
    XCTAssertEqual([error.message, copy.message], ["no", "yes"])
    XCTAssertEqual([error.metadata, copy.metadata], [["a": ["1"]], ["a": ["2"]]])
    XCTAssertEqual([error.details.count, copy.details.count], [0, 1])
  }

  /// Changing metadata in place does not copy the list.
  func testChangesAreInPlace() {
    var error = ConnectError(code: .aborted)
    error.metadata.reserveCapacity(8)
    error.metadata.add(name: "a", value: "1")
    let place = error.metadata.place
    error.metadata.add(name: "b", value: "2")
    XCTAssertEqual(error.metadata.place, place)
    XCTAssertEqual(error.metadata, ["a": ["1"], "b": ["2"]])
  }

  // MARK: Forms for people

  func testDescriptionIsCodeAndMessage() {
    let error = ConnectError(
      code: .unavailable,
      message: "no chain to a trusted root",
      exception: Cause(),
      httpStatus: 503
    )
    XCTAssertEqual("\(error)", "unavailable: no chain to a trusted root")
    XCTAssertEqual("\(ConnectError(code: .notFound))", "not_found")
    XCTAssertEqual("\(ConnectError(code: .notFound, message: ""))", "not_found")
    XCTAssertEqual("\(ConnectError(code: .notFound, exception: Cause()))", "not_found: the cause")
  }

  func testDebugDescriptionHasTheRest() {
    let error = ConnectError(
      code: .unavailable,
      message: "no chain to a trusted root",
      exception: Cause(),
      details: [ConnectError.Detail(type: "google.rpc.RetryInfo", value: ByteBuffer())],
      metadata: ["set-cookie": ["secret"]],
      httpStatus: 503
    )
    XCTAssertEqual(
      String(reflecting: error),
      """
      unavailable: no chain to a trusted root; HTTP status 503 Service Unavailable; details: google.rpc.RetryInfo; \
      cause: the cause at /build/ssl/record.cc:231
      """
    )
    XCTAssertEqual("\([ConnectError(code: .aborted)])", "[aborted]")
  }

  func testLocalizedDescriptionIsTheDescription() {
    let error: any Error = ConnectError(code: .unavailable, message: "no one there", exception: Cause())
    XCTAssertEqual(error.localizedDescription, "unavailable: no one there")
    XCTAssertEqual(ConnectError(code: .aborted).localizedDescription, "aborted")
  }

  // MARK: No error has the code ok

  func testOKBecomesUnknown() {
    var error = ConnectError(code: .ok, message: "all is well")
    XCTAssertEqual(error.code, .unknown)
    XCTAssertEqual(error.message, "all is well")
    error = ConnectError(code: .notFound)
    let copy = error
    error.code = .ok
    XCTAssertEqual(error.code, .unknown)
    XCTAssertEqual(copy.code, .notFound)
    XCTAssertEqual(ConnectError(Cause(), code: .ok).code, .unknown)
    XCTAssertEqual(HTTPResponse(error: ConnectError(code: .ok)).code, .unknown)
    XCTAssertEqual(ResponseMessage<Int>(error: ConnectError(code: .ok)).code, .unknown)
    guard case .complete(.unknown, .some, _) = StreamResult<Int>.failed(ConnectError(code: .ok)) else {
      return XCTFail("ok")
    }
  }
}
