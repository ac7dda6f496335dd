import Connect
import ConnectInterceptors
import ConnectTesting
import NIOCore
import XCTest

final class HTTPStatusInterceptorTests: XCTestCase {
  private func verb(
    _ response: HTTPResponse,
    _ interceptor: HTTPStatusInterceptor = HTTPStatusInterceptor()
  ) async throws -> HTTPResponse? {
    let driver = InterceptorDriver { _ in interceptor }
    return try await driver.unary.response(response).outcome.response
  }

  func testAStatusThatIsNotAccepted() async throws {
    for (status, code) in [
      (304, Code.unknown), (206, .unknown), (503, .unavailable), (401, .unauthenticated),
    ] {
      let given = HTTPResponse(headers: ["x": ["1"]], message: ByteBuffer(string: "x"), httpStatus: status)
      let response = try await self.verb(given)
      XCTAssertEqual(response?.error?.code, code)
      XCTAssertEqual(response?.error?.message, HTTPStatus.describe(status))
      XCTAssertEqual(response?.error?.httpStatus, status)
      XCTAssertEqual(response?.error?.metadata, ["x": ["1"]])
      XCTAssertEqual(response?.message.readableBytes, 0)
    }
  }

  func testWhatPasses() async throws {
    let good = try await self.verb(HTTPResponse(message: ByteBuffer(string: "x"), httpStatus: 200))
    XCTAssertNil(good?.error)
    let answered = try await self.verb(HTTPResponse(message: ByteBuffer(string: "x")))
    XCTAssertNil(answered?.error)
    let accepted = try await self.verb(
      HTTPResponse(httpStatus: 304),
      HTTPStatusInterceptor(accepting: 200..<400)
    )
    XCTAssertNil(accepted?.error)
    let refused = try await self.verb(HTTPResponse(httpStatus: 200), HTTPStatusInterceptor(accepting: [204]))
    XCTAssertEqual(refused?.error?.code, .unknown)
    let error = ConnectError(code: .notFound, message: "no", httpStatus: 404)
    let failed = try await self.verb(HTTPResponse(error: error))
    XCTAssertEqual(failed?.error?.message, "no")
  }
}
