internal import Foundation
import XCTest

/// The Python servers start, answer and end.
final class PythonServerTests: XCTestCase {
  private let service = "/connect.test.v1.TestService"

  func testConnectServerAnswersOverHTTP1() async throws {
    let server = try await PythonServer.shared(.connect)
    let answer = try await PlainConnection.post(
      port: server.port("http"),
      "\(self.service)/Echo",
      json: #"{"payload":{"big":"9007199254740993"}}"#
    )
    XCTAssertTrue(answer.hasPrefix("HTTP/1.1 200"), answer)
    XCTAssertTrue(answer.contains(#""big": "9007199254740993""#), answer)
    XCTAssertTrue(answer.contains(#""httpVersion": "1.1""#), answer)
  }

  func testConnectServerDoesWhatTheInstructionSays() async throws {
    let server = try await PythonServer.shared(.connect)
    let answer = try await PlainConnection.post(
      port: server.port("http"),
      "\(self.service)/Echo",
      json: """
        {"instruction": {
          "headers": [{"name": "x-one", "values": ["a", "b, c"]}],
          "trailers": [{"name": "x-two", "values": ["d"]}],
          "failure": {
            "code": "CODE_NOT_FOUND", "message": "nicht da: ß",
            "details": [{"@type": "type.googleapis.com/connect.test.v1.ErrorInfo", "reason": "r"}]
          }
        }}
        """
    )
    XCTAssertTrue(answer.hasPrefix("HTTP/1.1 404"), answer)
    XCTAssertTrue(answer.contains("x-one: a\r\nx-one: b, c\r\n"), answer)
    XCTAssertTrue(answer.contains("trailer-x-two: d\r\n"), answer)
    XCTAssertTrue(answer.contains("nicht da: ß"), answer)
    XCTAssertTrue(answer.contains(#"{"type": "connect.test.v1.ErrorInfo", "value": "CgFy"}"#), answer)
  }

  func testConnectServerSpeaksHTTP2OnTheSamePort() async throws {
    let server = try await PythonServer.shared(.connect)
    let type = try await PlainConnection.firstFrameType(port: server.port("http"))
    XCTAssertEqual(type, 4, "SETTINGS")
  }

  func testConnectServerAnnouncesItsOtherAddresses() async throws {
    let server = try await PythonServer.shared(.connect)
    XCTAssertGreaterThan(try server.port("https"), 0)
    XCTAssertTrue(FileManager.default.fileExists(atPath: try server.text("unix")))
    XCTAssertTrue(try server.text("authority").hasPrefix("-----BEGIN CERTIFICATE-----"))
  }

  func testMisbehavingServerSpeaksHTTP2OnAllPorts() async throws {
    let server = try await PythonServer.shared(.misbehaving)
    for name in ["normal", "one_stream", "closed_window"] {
      let type = try await PlainConnection.firstFrameType(port: server.port(name))
      XCTAssertEqual(type, 4, "SETTINGS on \(name)")
    }
  }

  func testStopEndsTheProcess() async throws {
    let server = try await PythonServer.start(.misbehaving)
    XCTAssertTrue(server.isRunning)
    await server.stop()
    XCTAssertFalse(server.isRunning)
  }
}
