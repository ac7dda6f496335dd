internal import Foundation
internal import LoopbackServer
internal import SwiftProtobuf
internal import TestSupport
internal import XCTest

/// `connectrpc call` beside `buf curl`.
final class CommandLineBufTests: XCTestCase {
  private static let service = "connect.test.v1.TestService"

  /// The same calls by buf give the same messages and the same errors.
  func testAgreesWithBuf() async throws {
    let server = try await PythonServer.shared(.connect)
    let schema = try await self.descriptorSet()
    let url = "http://127.0.0.1:\(try server.port("http"))/\(Self.service)"
    let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..").standardized
    let buf = root.appending(path: ".venv/bin/buf")
    for networkProtocol in ["connect", "grpc", "grpc-web"] {
      for (method, data) in [
        ("Echo", #"{"payload": {"text": "ä", "big": "7", "numbers": [1, 2], "data": "AAE=", "color": 1}}"#),
        ("Count", #"{"from": 5, "instruction": {"messageCount": 3}}"#),
        ("Sum", #"{"number": 3} {"number": 4}"#),
        ("Converse", #"{"payload": {"text": "a"}} {"payload": {"text": "b"}}"#),
        ("Echo", #"{"instruction": {"failure": {"code": 5, "message": "none"}}}"#),
        (
          "Echo",
          #"{"instruction": {"failure": {"code": 5, "message": "none", "details": [\#(Self.detail)]}}}"#
        ),
      ] {
        let what = "\(method) over \(networkProtocol)"
        let arguments = ["--schema", schema, "-d", data, "\(url)/\(method)", "--protocol"]
        let ours = try ChildProcess(
          product: "connectrpc",
          arguments: ["call", "--http", "2"] + arguments + [networkProtocol]
        )
        let theirs = try ChildProcess(
          buf,
          arguments: ["curl", "--http2-prior-knowledge"] + arguments + [
            networkProtocol.replacing("-", with: "")
          ]
        )
        var messages: [[NSDictionary]] = []
        var statuses: [Int32] = []
        for process in [ours, theirs] {
          try process.closeInput()
          messages.append(try jsonObjects(in: try await process.readAll()))
          statuses.append(try await process.exitStatus(within: .seconds(60)))
        }
        XCTAssertEqual(messages[0], messages[1], what)
        XCTAssertEqual(messages[0].isEmpty, statuses[0] != 0, "\(what): \(ours.errorOutput)")
        XCTAssertEqual(statuses[0] == 0, statuses[1] == 0, "\(what): \(theirs.errorOutput)")
        if statuses[0] != 0 {
          XCTAssertTrue(ours.errorOutput.contains("not_found (5): none"), ours.errorOutput)
          XCTAssertTrue(theirs.errorOutput.contains("not_found"), theirs.errorOutput)
          try self.checkDetails(ours.errorOutput, theirs.errorOutput, isThere: data.contains("details"))
        }
      }
    }
  }

  private static let detail =
    #"{"@type": "type.googleapis.com/connect.test.v1.ErrorInfo", "reason": "r", "metadata": {"a": "b"}}"#

  /// buf shows the bytes of details, and we show their JSON.
  private func checkDetails(_ ours: String, _ theirs: String, isThere: Bool) throws {
    let prefix = "detail: connect.test.v1.ErrorInfo: "
    let lines = ours.split(separator: "\n").filter { $0.hasPrefix("detail: ") }
    let json = try JSONSerialization.jsonObject(with: Data(theirs.utf8)) as? [String: Any]
    let details = json?["details"] as? [[String: Any]] ?? []
    XCTAssertEqual(lines.count, isThere ? 1 : 0, ours)
    XCTAssertEqual(details.count, lines.count, theirs)
    for (line, detail) in zip(lines, details) {
      XCTAssertTrue(line.hasPrefix(prefix), ours)
      XCTAssertEqual(detail["type"] as? String, "connect.test.v1.ErrorInfo", theirs)
      var text = try XCTUnwrap(detail["value"] as? String, theirs)
      text += String(repeating: "=", count: (4 - text.count % 4) % 4)
      let bytes = try XCTUnwrap(Data(base64Encoded: text), theirs)
      XCTAssertEqual(
        try ErrorInfo(jsonString: String(line.dropFirst(prefix.count))),
        try ErrorInfo(serializedBytes: bytes)
      )
    }
  }
}
