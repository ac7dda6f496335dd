internal import Foundation
internal import Glibc
internal import LoopbackServer
internal import TestSupport
internal import XCTest

/// `connectrpc load`: what it sends, and how it ends early.
final class CommandLineLoadTests: XCTestCase {
  private static let service = "connect.test.v1.TestService"

  private func start(_ arguments: [String]) throws -> ChildProcess {
    try ChildProcess(product: "connectrpc", arguments: ["load"] + arguments, environment: ["NO_COLOR": "1"])
  }

  /// Each call has one request.
  func testSeveralRequestsAreRefused() async throws {
    let url = "\(try await self.reflecting())/\(Self.service)"
    for method in ["Echo", "Sum"] {
      let output = try await self.connectrpc("load", "\(url)/\(method)", "--count", "1", "-d", "{} {}")
      XCTAssertEqual(output.status, 64, output.error)
      XCTAssertEqual(output.text, "")
      XCTAssertTrue(output.error.contains("there are several"), output.error)
    }
  }

  func testConnections() async throws {
    let url = "http://127.0.0.1:\(try await PythonServer.shared(.connect).port("http"))/\(Self.service)/Echo"
    let schema = try await self.descriptorSet()
    for count in [1, 2] {
      let output = try await self.connectrpc(
        "load",
        url,
        "--http",
        "1",
        "--callers",
        "8",
        "--count",
        "100",
        "--connections",
        "\(count)",
        "--json",
        "--schema",
        schema
      )
      XCTAssertEqual(output.status, 0, output.error)
      let report = try JSONSerialization.jsonObject(with: Data(output.text.utf8)) as? [String: Any]
      let addresses = try XCTUnwrap(report?["addresses"] as? [[String: Any]], output.text)
      XCTAssertEqual(addresses.map { $0["connections"] as? Int }, [count], output.text)
    }
  }

  // MARK: Interrupts

  func testAnInterruptedLoadReports() async throws {
    let server = try await LoopbackServer.start()
    let process = try self.start([
      "\(server.url)/\(Self.service)/Echo", "--schema", try await self.descriptorSet(), "--callers", "2",
      "--duration", "10m",
    ])
    try await eventually("there are calls") { server.requests.count > 20 }
    process.signal(SIGINT)
    let text = String(decoding: try await process.readAll(), as: UTF8.self)
    let status = try await process.exitStatus(within: patience)
    XCTAssertEqual(status, 0, process.errorOutput)
    XCTAssertTrue(text.contains(" calls in "), text)
    XCTAssertFalse(text.contains("canceled"), text)
    await server.stop()
  }

  /// Calls that do not end are cancelled, so that the rest is reported.
  func testAnInterruptedLoadOfAServerThatHangs() async throws {
    for method in ["Echo", "Count", "Sum", "Converse"] {
      let server = try await LoopbackServer.start()
      let path = "/\(Self.service)/\(method)"
      server.onRaw(path) { _, responder in await responder.waitUntilClosed() }
      let process = try self.start([
        "\(server.url)\(path)", "--schema", try await self.descriptorSet(), "--callers", "3", "--duration",
        "10m", "--timeout", "10m",
      ])
      try await eventually("calls are in flight") { server.requests.count == 3 }
      let start = ContinuousClock.now
      process.signal(SIGINT)
      let text = String(decoding: try await process.readAll(), as: UTF8.self)
      let status = try await process.exitStatus(within: patience)
      XCTAssertEqual(status, 1, "\(method): \(process.errorOutput)")
      XCTAssertTrue(text.hasPrefix("3 calls in "), "\(method): \(text)")
      XCTAssertTrue(text.contains("  canceled "), "\(method): \(text)")
      XCTAssertLessThan(ContinuousClock.now - start, .seconds(20), method)
      await server.stop()
    }
  }

  /// The live line says how much is to come.
  func testProgress() async throws {
    let url = "\(try await self.reflecting())/\(Self.service)/Echo"
    for (options, part) in [
      (["--callers", "2", "--duration", "2s"], " s of 2 s  "),
      (["--rate", "20", "--count", "30"], " of 30 calls  "),
    ] {
      let terminal = try Terminal()
      let process = try terminal.run("connectrpc", ["load", url] + options)
      try await terminal.waitFor(part)
      process.waitUntilExit()
      XCTAssertEqual(process.terminationStatus, 0, terminal.text)
    }
  }
}
