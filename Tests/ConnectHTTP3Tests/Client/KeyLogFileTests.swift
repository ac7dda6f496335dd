internal import Connect
internal import ConnectHTTP3
internal import ConnectNIO
internal import Foundation
internal import LoopbackServer
internal import NIOCore
internal import XCTest

/// `TLS.keyLogFile`, over HTTP/3 and over TCP.
final class KeyLogFileTests: XCTestCase {
  private let path = FileManager.default.temporaryDirectory.appending(path: "connect-keys-\(UUID())").path()
  private let labels: Set = [
    "CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_HANDSHAKE_TRAFFIC_SECRET", "CLIENT_TRAFFIC_SECRET_0",
    "SERVER_TRAFFIC_SECRET_0",
  ]

  override func tearDown() {
    try? FileManager.default.removeItem(atPath: self.path)
  }

  private func get(
    _ target: String,
    port: Int,
    _ configuration: NIOHTTPClient.Configuration
  ) async throws -> StreamRecord {
    let client = NIOHTTPClient(configuration: configuration)
    let endpoint = try client.endpoint(
      for: Origin(scheme: .https, host: "localhost", port: port),
      on: nil,
      requiresHTTP2: false
    )
    let record = await StreamRecord.run(
      HTTPStreamRequest(method: .get, target: target, headers: [:], body: .complete(ByteBuffer())),
      on: endpoint
    )
    await client.shutdown(within: .zero)
    return record
  }

  /// Each line has a label, the random number of a client's, of 32 bytes, and a secret.
  private func checkLines(ofSessions count: Int) throws {
    let lines = try String(contentsOfFile: self.path, encoding: .utf8).split(separator: "\n")
    let fields = lines.map { $0.split(separator: " ") }
    XCTAssertTrue(fields.allSatisfy { $0.count == 3 && $0[1].count == 64 && $0[2].count >= 64 }, "\(lines)")
    XCTAssertTrue(fields.joined().joined().allSatisfy { $0.isHexDigit || $0.isUppercase || $0 == "_" })
    XCTAssertTrue(self.labels.isSubset(of: Set(fields.map { String($0[0]) })), "\(lines)")
    XCTAssertEqual(Set(fields.map { $0[1] }).count, count, "\(lines)")
    let attributes = try FileManager.default.attributesOfItem(atPath: self.path)
    XCTAssertEqual(attributes[.posixPermissions] as? Int, 0o600)
  }

  func testHTTP3() async throws {
    let server = try await PythonHTTP3Server.shared()
    var configuration = server.configuration()
    configuration.tls.keyLogFile = self.path
    for count in 1...2 {
      let record = try await self.get("/script/size/1", port: server.port(.aioquic), configuration)
      XCTAssertEqual(record.text, "x", "\(String(describing: record.failure))")
      try self.checkLines(ofSessions: count)
    }
  }

  func testTCP() async throws {
    let certificates = try await SharedCertificates.shared.get()
    let server = try await LoopbackServer.start(.tls(certificates))
    server.onRaw("/test") { _, responder in try await responder.respond(body: ByteBuffer(string: "x")) }
    var configuration = NIOHTTPClient.Configuration()
    configuration.tls.trustRoots = .pemBytes(Array(certificates.authorityPEM.utf8))
    configuration.tls.keyLogFile = self.path
    let record = try await self.get("/test", port: server.port, configuration)
    XCTAssertEqual(record.text, "x", "\(String(describing: record.failure))")
    try self.checkLines(ofSessions: 1)
    await server.stop()
  }

  func testFileThatCannotBeOpened() async throws {
    let server = try await PythonHTTP3Server.shared()
    for http3 in [nil, HTTP3Support.alone] {
      var configuration = server.configuration()
      configuration.http3 = http3
      configuration.tls.keyLogFile = "/nowhere/keys"
      let record = try await self.get("/", port: server.port(.aioquic), configuration)
      XCTAssertEqual(record.failure?.error.code, .failedPrecondition)
      let message = record.failure?.error.message ?? ""
      let expected = "the key log file /nowhere/keys cannot be opened: No such file or directory"
      XCTAssertTrue(message.hasSuffix(expected), message)
    }
  }
}
