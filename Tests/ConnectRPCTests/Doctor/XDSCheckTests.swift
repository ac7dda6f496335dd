import XCTest

@testable import connectrpc

/// What `doctor` says of control planes.
final class XDSCheckTests: XCTestCase {
  private func findings(_ variables: [String: String], target: String = "xds:///orders") async -> [String] {
    await XDSCheck(target: target, environment: variables, patience: .seconds(60)).run()
      .map { "\($0.verdict.rawValue) \($0.subject): \($0.text)" }
  }

  func testMistakesInTheBootstrap() async {
    var found = await self.findings([:])
    XCTAssertEqual(found.count, 1)
    XCTAssertTrue(found[0].hasPrefix("NO bootstrap: ") && found[0].contains("GRPC_XDS_BOOTSTRAP"), "\(found)")
    found = await self.findings(["GRPC_XDS_BOOTSTRAP_CONFIG": "{\"xds_servers\": []}"])
    XCTAssertTrue(found[0].contains("xds_servers"), "\(found)")
  }

  func testAControlPlaneThatCannotBeReached() async {
    let bootstrap = """
      {"node": {"id": "me"}, "xds_servers": [{"server_uri": "127.0.0.1:1", "channel_creds": [{"type": "insecure"}]}]}
      """
    let found = await self.findings(["GRPC_XDS_BOOTSTRAP_CONFIG": bootstrap])
    XCTAssertEqual(found.first, "ok bootstrap: node \"me\", 1 control planes")
    XCTAssertTrue(found.last?.hasPrefix("NO xds server: 127.0.0.1:1: ") == true, "\(found)")
    let target = await self.findings(["GRPC_XDS_BOOTSTRAP_CONFIG": bootstrap], target: "dns:orders")
    XCTAssertTrue(target.last?.hasPrefix("NO target: ") == true, "\(target)")
  }
}
