internal import Foundation
internal import TestSupport
internal import XCTest

/// The programs of Sources/Examples against a server of others.
final class ExampleTests: XCTestCase {
  /// What a program prints, line by line.
  private func run(_ product: String, _ arguments: String..., input: String = "") async throws -> [String] {
    let port = try await PythonServer.shared(.eliza).port("http")
    let process = try ChildProcess(product: product, arguments: ["http://127.0.0.1:\(port)"] + arguments)
    try await process.write(Data(input.utf8))
    try process.closeInput()
    let text = String(decoding: try await process.readAll(), as: UTF8.self)
    let status = try await process.exitStatus(within: .seconds(60))
    XCTAssertEqual(status, 0, process.errorOutput)
    return text.split(separator: "\n").map(String.init)
  }

  func testFirstCall() async throws {
    let lines = try await self.run("FirstCall", "I feel tired.")
    XCTAssertEqual(lines, ["You said: I feel tired."])
  }

  func testFirstCallSaysWhatFailed() async throws {
    let lines = try await self.run("FirstCall", "Tenant?")
    XCTAssertEqual(lines.count, 1)
    XCTAssertTrue(lines[0].hasPrefix("failed: unauthenticated"), lines[0])
  }

  func testConversation() async throws {
    let lines = try await self.run("Conversation", input: "Hello\nGoodbye\n")
    XCTAssertEqual(lines, ["Eliza: You said: Hello", "Eliza: You said: Goodbye"])
  }

  func testProduction() async throws {
    let lines = try await self.run("Production")
    let answers = ["Hello", "I feel tired.", "Goodbye"].map { "Eliza: acme said: \($0)" }
    XCTAssertEqual(Array(lines.prefix(3)), answers)
    let explanation = lines.dropFirst(3)
    XCTAssertTrue(explanation.contains { $0.contains("TenantInterceptor") }, "\(lines)")
  }

  /// The page has what dashboards for gRPC and for OpenTelemetry's conventions read, of the three calls.
  func testProductionServesMetrics() async throws {
    let lines = try await self.run("Production")
    let method = "method=\"connectrpc.eliza.v1.ElizaService/Say\""
    func value(_ name: String, _ label: String) -> String? {
      lines.first { $0.hasPrefix("\(name){") && $0.contains(label) }?.split(separator: " ").last.map(
        String.init
      )
    }
    XCTAssertEqual(value("rpc_client_call_duration_seconds_count", "rpc_\(method)"), "3", "\(lines)")
    XCTAssertEqual(value("grpc_client_attempt_started_total", "grpc_\(method)"), "3.0", "\(lines)")
    for name in [
      "attempt_duration_seconds", "attempt_sent_total_compressed_message_size_bytes",
      "attempt_rcvd_total_compressed_message_size_bytes", "call_duration_seconds",
    ] {
      XCTAssertEqual(value("grpc_client_\(name)_count", "grpc_status=\"OK\""), "3", name)
      XCTAssertTrue(lines.contains("# TYPE grpc_client_\(name) histogram"), name)
    }
    XCTAssertEqual(
      value("grpc_subchannel_connection_attempts_succeeded_total", "grpc_target=\"dns:///"),
      "1.0"
    )
    XCTAssertTrue(lines.contains("# TYPE grpc_subchannel_open_connections gauge"))
  }
}
