import Connect
import HTTPTypes
import NIOCore
import XCTest

/// A file that imports swift-http-types too, whose `HTTPRequest` has the same name.
final class HTTPTypesImportTests: XCTestCase {
  /// `Connect.HTTPRequest` says which one is meant, in signatures and in hooks.
  private func path<Message>(of request: Connect.HTTPRequest<Message>) -> String { request.url.path }

  func testBothTypesCanBeNamed() {
    let url = RequestURL(origin: Origin(scheme: .https, host: "test", port: 443), path: "/test.v1.Test/Get")
    let request = Connect.HTTPRequest(url: url, contentType: "application/proto", message: ByteBuffer())
    let foreign = HTTPTypes.HTTPRequest(method: .get, scheme: "https", authority: "test", path: "/other")
    XCTAssertEqual(self.path(of: request), "/test.v1.Test/Get")
    XCTAssertEqual(foreign.path, "/other")
    let hooks = UnaryFunction(updateRequest: { (request: inout Connect.HTTPRequest<ByteBuffer>) in
      request.headers["x"] = ["1"]
    })
    XCTAssertNotNil(hooks.requestFunction)
  }
}
