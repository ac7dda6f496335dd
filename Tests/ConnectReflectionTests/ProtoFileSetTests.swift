internal import Connect
internal import ConnectReflection
internal import NIOCore
import XCTest

/// Not yet.
final class ProtoFileSetTests: XCTestCase {
  func testCompile() async throws {
    let set = try await ProtoFileSet.compile(["connect/test/v1/test.proto"], importPaths: [protos])
    XCTAssertEqual(set.serviceNames, ["connect.test.v1.TestService"])
    print(try set.source(ofFile: "connect/test/v1/test.proto"))
  }
}
