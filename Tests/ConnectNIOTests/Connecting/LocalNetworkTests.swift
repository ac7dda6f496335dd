import XCTest

@testable import ConnectNIO

final class LocalNetworkTests: XCTestCase {
  func testItStaysTheSame() {
    XCTAssertNotNil(LocalNetwork.current)
    XCTAssertEqual(LocalNetwork.current, LocalNetwork.current)
  }
}
