internal import Foundation
internal import LoopbackServer
internal import NIOCore
internal import NIOPosix
internal import TestSupport
internal import XCTest

/// The options of `connectrpc` that say how a server is reached, where types come from, and how output looks.
final class CommandLineOptionTests: XCTestCase {
  private static let service = "connect.test.v1.TestService"
  private static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..")
    .standardized

  // MARK: Types

  func testProtoFiles() async throws {
    let files = [
      "--proto", "connect/test/v1/test.proto", "-I", Self.root.appending(path: "Protos").path(),
    ]
    let methods = try await self.connectrpc(["list", Self.service] + files)
    XCTAssertTrue(methods.lines.contains("\(Self.service)/Echo"), methods.text + methods.error)
    let url = "\(try await self.reflecting("off"))/\(Self.service)/Echo"
    let call = try await self.connectrpc(["call", url, "-d", #"{"payload": {"text": "x"}}"#] + files)
    XCTAssertEqual(call.status, 0, call.error)
    XCTAssertTrue(call.text.contains(#""text":"x""#), call.text)
    let missing = try await self.connectrpc("call", url, "--proto", "/nonexistent.proto")
    XCTAssertEqual(missing.status, 64, missing.error)
    XCTAssertTrue(missing.error.contains("/nonexistent.proto"), missing.error)
  }

  func testADescriptorAsJSON() async throws {
    let output = try await self.connectrpc("describe", try await self.reflecting(), Self.service, "--json")
    XCTAssertEqual(output.status, 0, output.error)
    let json = try JSONSerialization.jsonObject(with: Data(output.text.utf8)) as? [String: Any]
    XCTAssertEqual(json?["name"] as? String, "TestService", output.text)
  }

  // MARK: Reaching a server

  func testUnixSockets() async throws {
    for script in [PythonServer.Script.connect, .grpc] {
      let url = "unix:\(try await PythonServer.shared(script).text("unix"))/\(Self.service)/Echo"
      let output = try await self.connectrpc(
        "call",
        url,
        "--schema",
        try await self.descriptorSet(),
        "-d",
        #"{"payload": {"text": "x"}}"#
      )
      XCTAssertEqual(output.status, 0, output.error)
      XCTAssertTrue(output.text.contains(#""text":"x""#), output.text)
    }
  }

  func testHTTP3() async throws {
    let servers = Self.root.appending(path: "Tests/EndToEndTests/Servers").path()
    let server = try ChildProcess(
      Self.root.appending(path: ".venv/bin/python"),
      arguments: ["-B", Self.root.appending(path: "Tests/ConnectHTTP3Tests/Servers/h3_server.py").path()],
      environment: [
        "CONNECT_TEST_GENERATED": Self.root.appending(path: ".venv/generated").path(),
        "CONNECT_TEST_LAUNCHER": servers,
      ]
    )
    var line = Data()
    while let byte = try await server.read(1).first, byte != UInt8(ascii: "\n") { line.append(byte) }
    let facts = try XCTUnwrap(JSONSerialization.jsonObject(with: line) as? [String: Any], server.errorOutput)
    let port = try XCTUnwrap(facts["h3"] as? Int)
    let output = try await self.connectrpc(
      "call",
      "https://127.0.0.1:\(port)/\(Self.service)/Echo",
      "--http",
      "3",
      "-v",
      "--cacert",
      try self.temporaryFile(try XCTUnwrap(facts["authority"] as? String)),
      "--schema",
      try await self.descriptorSet(),
      "-d",
      #"{"payload": {"text": "x"}}"#
    )
    XCTAssertEqual(output.status, 0, output.error)
    XCTAssertTrue(output.text.contains(#""text":"x""#), output.text)
    XCTAssertTrue(output.error.contains("* HTTP/3, 127.0.0.1:\(port)"), output.error)
  }

  func testProxies() async throws {
    let url = "\(try await self.reflecting())/\(Self.service)/Echo"
    for (program, scheme) in [(ForwardProxy.Setting.Program.tinyproxy, "http"), (.microsocks, "socks5")] {
      let port = try await ForwardProxy.with(.init(program: program)) { proxy in
        let output = try await self.connectrpc("call", url, "--proxy", "\(scheme)://127.0.0.1:\(proxy.port)")
        XCTAssertEqual(output.status, 0, output.error)
        return proxy.port
      }
      // So the call does go through it.
      let gone = try await self.connectrpc("call", url, "--proxy", "\(scheme)://127.0.0.1:\(port)")
      XCTAssertEqual(gone.status, 64 + 14, gone.error)
    }
    let process = try ChildProcess(
      product: "connectrpc",
      arguments: ["call", url, "--proxy", "off"],
      environment: ["http_proxy": "http://127.0.0.1:1", "no_proxy": ""]
    )
    let status = try await process.exitStatus(within: .seconds(60))
    XCTAssertEqual(status, 0, process.errorOutput)
  }

  func testAddressesOfNames() async throws {
    let port = try await PythonServer.shared(.reflection).port("both")
    let path = "\(Self.service)/Echo"
    for rule in ["A.Invalid=127.0.0.1", "a.invalid=127.0.0.1:\(port)", "a.invalid.=[::1]:1,127.0.0.1"] {
      let output = try await self.connectrpc(
        "call",
        "http://a.INVALID:\(port)/\(path)",
        "--resolve",
        "b.invalid=127.0.0.2",
        "--resolve",
        rule
      )
      XCTAssertEqual(output.status, 0, "\(rule): \(output.error)")
      XCTAssertEqual(output.error, "", rule)
    }
    let other = try await self.connectrpc(
      "call",
      "http://127.0.0.1:\(port)/\(path)",
      "--resolve",
      "a.invalid=127.0.0.2"
    )
    XCTAssertEqual(other.status, 0, other.error)
    XCTAssertTrue(other.error.contains("no rule is for 127.0.0.1"), other.error)
    XCTAssertEqual(other.error.split(separator: "\n").count, 1, other.error)
  }

  /// Also of reflection, which the server does not have.
  func testTheHostThatTheServerIsTold() async throws {
    let server = try await LoopbackServer.start()
    let url = "\(server.url)/\(Self.service)/Echo"
    let schema = ["--schema", try await self.descriptorSet()]
    let authority = ["--authority", " api.example:8443 "]
    for command in [["call", url], ["load", url, "--count", "1"]] {
      let output = try await self.connectrpc(command + schema + authority)
      XCTAssertEqual(output.status, 0, "\(command): \(output.error)")
    }
    _ = try await self.connectrpc(["list", server.url] + authority)
    let hosts = server.requests.map { $0.headers.first("host") }
    XCTAssertGreaterThanOrEqual(hosts.count, 3)
    XCTAssertEqual(Set(hosts), ["api.example:8443"])
    let recording = try await self.connectrpc(
      ["record", "/nonexistent.json", "--to", server.url] + authority
    )
    XCTAssertEqual(recording.status, 64, recording.error)
    await server.stop()
  }

  func testClientCertificatesAndServerNames() async throws {
    let server = try await PythonServer.shared(.grpc)
    let port = try server.port("mutual")
    let authority = try self.temporaryFile(server.text("authority"))
    let options = [
      "--schema", try await self.descriptorSet(), "--cacert", authority, "--cert",
      try self.temporaryFile(server.text("client_chain")), "--key",
      try self.temporaryFile(server.text("client_key")),
    ]
    let known = try await self.connectrpc(
      ["call", "https://localhost:\(port)/\(Self.service)/Echo"] + options
    )
    XCTAssertEqual(known.status, 0, known.error)
    let unknown = try await self.connectrpc(
      ["call", "https://localhost:\(port)/\(Self.service)/Echo"] + options.prefix(4)
    )
    XCTAssertEqual(unknown.status, 64 + 14, unknown.error)
    let named = [
      "call", "https://a.invalid:\(port)/\(Self.service)/Echo", "--resolve", "a.invalid=127.0.0.1",
    ]
    let wrong = try await self.connectrpc(named + options)
    XCTAssertEqual(wrong.status, 64 + 14, wrong.error)
    let right = try await self.connectrpc(named + options + ["--servername", "localhost"])
    XCTAssertEqual(right.status, 0, right.error)
  }

  /// A server that accepts, and never shakes hands.
  func testTheTimeToConnect() async throws {
    let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .bind(host: "127.0.0.1", port: 0).get()
    let port = try XCTUnwrap(listener.localAddress?.port)
    let start = ContinuousClock.now
    let output = try await self.connectrpc(
      "list",
      "https://127.0.0.1:\(port)",
      "--http",
      "2",
      "--connect-timeout",
      "300ms"
    )
    try await listener.close()
    XCTAssertEqual(output.status, 64 + 14, output.error)
    // The default is 20 seconds.
    XCTAssertLessThan(ContinuousClock.now - start, .seconds(15))
  }

  // MARK: Output

  func testHowMessagesLook() async throws {
    let url = "\(try await self.reflecting())/\(Self.service)/Echo"
    let plain = try await self.connectrpc("call", url)
    XCTAssertEqual(plain.lines.count, 1, plain.text)
    XCTAssertTrue(plain.text.contains(#""httpVersion":"2""#), plain.text)
    let pretty = try await self.connectrpc("call", url, "--pretty", "--proto-names")
    XCTAssertTrue(pretty.lines.contains(#"    "http_version": "2","#), pretty.text)
  }

  func testColoursAreForTerminals() async throws {
    let url = "\(try await self.reflecting())/\(Self.service)/Unimplemented"
    let terminal = try Terminal()
    let process = try terminal.run(
      "connectrpc",
      ["call", url],
      environment: ["TERM": "xterm", "NO_COLOR": nil]
    )
    try await terminal.waitFor("\u{1b}[31merror:\u{1b}[0m")
    process.waitUntilExit()
    let without = try Terminal()
    let other = try without.run(
      "connectrpc",
      ["call", url],
      environment: ["TERM": "xterm", "NO_COLOR": "1"]
    )
    try await without.waitFor("error: ")
    other.waitUntilExit()
    XCTAssertFalse(without.text.contains("\u{1b}"), without.text)
    let pipe = try ChildProcess(
      URL(filePath: "/usr/bin/env"),
      arguments: ["-u", "NO_COLOR", "TERM=xterm", CommandLineProgram.path, "call", url]
    )
    try pipe.closeInput()
    let status = try await pipe.exitStatus(within: .seconds(60))
    XCTAssertEqual(status, 64 + 12, pipe.errorOutput)
    XCTAssertFalse(pipe.errorOutput.contains("\u{1b}"), pipe.errorOutput)
  }
}
