internal import Foundation
internal import TestSupport
internal import XCTest

/// The messages of Protos/envoy and so on are a part of the full ones.
final class ProtoSubsetTests: XCTestCase {
  func testFieldsAreThoseOfTheFullProtos() async throws {
    let root = CommandProcess.root
    let process = try ChildProcess(
      root.appending(path: ".venv/bin/python"),
      arguments: ["-B", root.appending(path: "Tests/ConnectXDSTests/Servers/check_protos.py").path()]
    )
    let output = String(decoding: try await process.readAll(), as: UTF8.self)
    let status = try await process.exitStatus()
    XCTAssertEqual(status, 0, output + process.errorOutput)
  }
}
