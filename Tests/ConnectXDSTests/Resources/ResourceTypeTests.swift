internal import XCTest

@testable internal import ConnectXDS

final class ResourceTypeTests: XCTestCase {
  func testURLs() {
    XCTAssertEqual(ResourceType.cluster.url, "type.googleapis.com/envoy.config.cluster.v3.Cluster")
  }
}
