internal import Foundation
internal import LoopbackServer
internal import TestSupport
internal import XCTest

/// The program `connectrpc` against servers of others.
final class CommandLineTests: XCTestCase {
  private static let service = "connect.test.v1.TestService"

  // MARK: Reflection

  func testList() async throws {
    for port in ["v1", "v1alpha", "both"] {
      let services = try await self.connectrpc("list", try await self.reflecting(port))
      XCTAssertEqual(services.status, 0, services.error)
      XCTAssertTrue(services.lines.contains(Self.service), services.text)
    }
    let methods = try await self.connectrpc("list", try await self.reflecting(), Self.service)
    XCTAssertEqual(
      methods.lines,
      ["Echo", "Count", "Sum", "Converse", "Lookup", "Flood", "Unimplemented"].map { "\(Self.service)/\($0)" }
    )
    let json = try await self.connectrpc("list", try await self.reflecting(), "--json")
    let names = try JSONDecoder().decode([String].self, from: Data(json.text.utf8))
    XCTAssertTrue(names.contains(Self.service))
  }

  func testDescribe() async throws {
    let service = try await self.connectrpc("describe", try await self.reflecting(), Self.service)
    XCTAssertEqual(service.status, 0, service.error)
    XCTAssertTrue(service.text.contains("rpc Converse(stream"), service.text)
    let local = try await self.connectrpc(
      "describe",
      "connect.test.v1.Instruction",
      "--schema",
      try await self.descriptorSet()
    )
    XCTAssertTrue(local.text.contains("repeated Header headers = 1"), local.text + local.error)
  }

  func testReflectionThatIsOff() async throws {
    let output = try await self.connectrpc("list", try await self.reflecting("off"))
    XCTAssertEqual(output.status, 64 + 12)
    XCTAssertEqual(output.text, "")
    XCTAssertTrue(output.error.contains("--schema") || output.error.contains("descriptor set"), output.error)
    XCTAssertEqual(output.error.split(separator: "\n").count, 1, output.error)
  }

  // MARK: Calls

  func testCallsOfAllKinds() async throws {
    let url = "\(try await self.reflecting())/\(Self.service)"
    let unary = try await self.connectrpc("call", "\(url)/Echo", "-d", #"{"payload": {"text": "ä → b"}}"#)
    XCTAssertEqual(unary.status, 0, unary.error)
    XCTAssertTrue(unary.text.contains(#""text":"ä → b""#), unary.text)

    let stream = try await self.connectrpc(
      "call",
      "\(url)/Count",
      "-d",
      #"{"from": 5, "instruction": {"messageCount": 3}}"#
    )
    XCTAssertEqual(stream.status, 0, stream.error)
    XCTAssertEqual(stream.lines.count, 3, stream.text)

    let sum = try await self.connectrpc("call", "\(url)/Sum", input: "{\"number\": 3}\n{\"number\": 4}\n")
    XCTAssertEqual(sum.status, 0, sum.error)
    XCTAssertTrue(sum.text.contains("7"), sum.text)

    let converse = try await self.connectrpc("call", "\(url)/Converse", "-d", "{} {}")
    XCTAssertEqual(converse.status, 0, converse.error)
    XCTAssertEqual(converse.lines.count, 2, converse.text)
  }

  func testProtocolsVersionsAndCodecs() async throws {
    let server = try await PythonServer.shared(.connect)
    let schema = try await self.descriptorSet()
    let authority = FileManager.default.temporaryDirectory.appending(path: "\(UUID()).pem").path()
    try server.text("authority").write(toFile: authority, atomically: true, encoding: .utf8)
    self.addTeardownBlock { try? FileManager.default.removeItem(atPath: authority) }
    let plain = "http://127.0.0.1:\(try server.port("http"))/\(Self.service)/Echo"
    let secure = "https://localhost:\(try server.port("https"))/\(Self.service)/Echo"
    let data = #"{"payload": {"text": "x"}}"#
    for options in [
      ["--protocol", "connect"], ["--protocol", "connect", "--codec", "json"], ["--protocol", "grpc"],
      ["--protocol", "grpc-web"], ["--protocol", "auto"], ["--protocol", "connect", "--http", "2"],
      ["--protocol", "connect", "--compress"], ["--http", "1", "--protocol", "grpc-web"],
    ] {
      for url in [plain, secure] {
        let process = try ChildProcess(
          product: "connectrpc",
          arguments: ["call", url, "--schema", schema, "--cacert", authority, "-d", data] + options
        )
        try process.closeInput()
        let text = String(decoding: try await process.readAll(), as: UTF8.self)
        let status = try await process.exitStatus(within: .seconds(60))
        XCTAssertEqual(status, 0, "\(url) \(options): \(process.errorOutput)")
        XCTAssertTrue(text.contains(#""text":"x""#), "\(url) \(options): \(text)")
      }
    }
    let distrusted = try await self.connectrpc("call", secure, "--schema", schema, "-d", data)
    XCTAssertEqual(distrusted.status, 64 + 14)
    XCTAssertTrue(distrusted.error.contains("certificate"), distrusted.error)
    let insecure = try await self.connectrpc("call", secure, "--schema", schema, "-d", data, "-k")
    XCTAssertEqual(insecure.status, 0, insecure.error)
  }

  func testVerboseAndExplained() async throws {
    let url = "\(try await self.reflecting())/\(Self.service)/Echo"
    let output = try await self.connectrpc("call", url, "-d", "{}", "-v", "--explain", "-H", "x-a: 1")
    XCTAssertEqual(output.status, 0, output.error)
    XCTAssertEqual(output.lines.count, 1, output.text)
    for part in ["> x-a: 1", "< content-type", "* ", "attempt 1", "  TCP  ", "  first byte ", "  message "] {
      XCTAssertTrue(output.error.contains(part), "\(part) in \(output.error)")
    }
  }

  // MARK: Failures

  func testErrorsOfServers() async throws {
    let url = "\(try await self.reflecting())/\(Self.service)"
    let failure = try await self.connectrpc(
      "call",
      "\(url)/Echo",
      "-d",
      #"{"instruction": {"failure": {"code": 5, "message": "no such thing"}}}"#
    )
    XCTAssertEqual(failure.status, 64 + 5)
    XCTAssertEqual(failure.text, "")
    XCTAssertTrue(failure.error.contains("not_found (5): no such thing"), failure.error)
    let late = try await self.connectrpc(
      "call",
      "\(url)/Echo",
      "--timeout",
      "100ms",
      "-d",
      #"{"instruction": {"delayMs": 5000}}"#
    )
    // Either the question for the types or the call itself.
    XCTAssertEqual(late.status, 64 + 4, late.error)
    // The time is for the call alone, as the types come from a file, and long enough to connect on a busy machine.
    let explained = try await self.connectrpc(
      "call",
      "\(url)/Echo",
      "--schema",
      try await self.descriptorSet(),
      "--timeout",
      "2s",
      "--explain",
      "-d",
      #"{"instruction": {"delayMs": 60000}}"#
    )
    XCTAssertTrue(explained.error.contains("  no response "), explained.error)
    XCTAssertTrue(explained.error.contains("  deadline_exceeded "), explained.error)
    let unimplemented = try await self.connectrpc("call", "\(url)/Unimplemented")
    XCTAssertEqual(unimplemented.status, 64 + 12)
  }

  /// Each is one line that says what to do.
  func testBadInput() async throws {
    let url = try await self.reflecting()
    for (arguments, status, part) in [
      (["call", "localhost:80/a.B/C"], 64, "https://"),
      (["call", "\(url)/nothing"], 64, "names no method"),
      (["call", "\(url)/\(Self.service)/Nothing"], 64, "\(Self.service)/Echo"),
      (["call", "\(url)/\(Self.service)/Echo", "-d", "{"], 64, "request message 1"),
      (["call", "\(url)/\(Self.service)/Echo", "-d", #"{"payloaad": {}}"#], 64, "payloaad"),
      (["call", "\(url)/\(Self.service)/Echo", "-d", "{} {}"], 64, "takes one request"),
      (["call", "\(url)/\(Self.service)/Echo", "-d", "@/nonexistent"], 64, "/nonexistent"),
      (["call", "\(url)/\(Self.service)/Echo", "--schema", "/nonexistent"], 64, "/nonexistent"),
      (["call", "\(url)/\(Self.service)/Echo", "-H", "x"], 64, "NAME:VALUE"),
      (["call", "\(url)/\(Self.service)/Echo", "-H", "a b: 1"], 64, "a b"),
      (["call", "\(url)/\(Self.service)/Echo", "-H", "x-bin: ***"], 64, "x-bin"),
      (["call", "https://127.0.0.1:1/a.B/C", "--cacert", "/nonexistent"], 64, "/nonexistent"),
      (["call", "http://127.0.0.1:99999/a.B/C"], 64, "99999"),
      (["doctor", "http://user:secret@127.0.0.1:1"], 64, "127.0.0.1"),
      (["describe", "--schema", try await self.descriptorSet(), "a.Nothing"], 64, "a.Nothing"),
      (["call", "http://127.0.0.1:1/\(Self.service)/Echo"], 64 + 14, "127.0.0.1:1"),
      (["call", "http://nohost.invalid/\(Self.service)/Echo"], 64 + 14, "nohost.invalid"),
      (["list", "https://127.0.0.1:1"], 64 + 14, "127.0.0.1:1"),
      (["describe", url, "connect.test.v1.Nothing"], nil, "connect.test.v1.Nothing"),
    ] as [([String], Int32?, String)] {
      let process = try ChildProcess(product: "connectrpc", arguments: arguments)
      try process.closeInput()
      let text = try await process.readAll()
      let code = try await process.exitStatus(within: .seconds(60))
      if let status { XCTAssertEqual(code, status, "\(arguments): \(process.errorOutput)") }
      XCTAssertNotEqual(code, 0)
      XCTAssertTrue(text.isEmpty, "\(arguments)")
      XCTAssertTrue(process.errorOutput.contains(part), "\(arguments): \(process.errorOutput)")
      XCTAssertEqual(process.errorOutput.split(separator: "\n").count, 1, process.errorOutput)
    }
  }

  /// Standard input stays open and says nothing.
  func testCallsEndThoughTheInputDoesNot() async throws {
    let url = "\(try await self.reflecting())/\(Self.service)"
    let schema = try await self.descriptorSet()
    for (arguments, status) in [
      (["call", "\(url)/Converse", "--timeout", "300ms"], 64 + 4),
      (["call", "\(url)/Sum", "--timeout", "300ms"], 64 + 4),
      (["call", "http://127.0.0.1:1/\(Self.service)/Converse", "--schema", schema], 64 + 14),
      (["call", "http://127.0.0.1:1/\(Self.service)/Sum", "--schema", schema], 64 + 14),
    ] as [([String], Int32)] {
      let process = try ChildProcess(product: "connectrpc", arguments: arguments)
      let code = try await process.exitStatus(within: .seconds(60))
      XCTAssertEqual(code, status, "\(arguments): \(process.errorOutput)")
    }
  }

  func testOutputThatCannotBeWritten() async throws {
    let url = try await self.reflecting()
    let folder = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
    let program = folder.appending(path: "connectrpc").path(percentEncoded: false)
    for redirection in [">/dev/full", ">&-"] {
      let process = try ChildProcess(
        URL(filePath: "/bin/sh"),
        arguments: ["-c", "\"$0\" list \"$1\" \(redirection)", program, url]
      )
      let code = try await process.exitStatus(within: .seconds(60))
      XCTAssertEqual(code, 1, redirection)
      XCTAssertTrue(process.errorOutput.contains("cannot write"), process.errorOutput)
    }
  }

  // MARK: Terminals

  /// What a load comes to is shown each second, on terminals only.
  func testLiveLineOfALoad() async throws {
    let terminal = try Terminal()
    let process = try terminal.run(
      "connectrpc",
      ["load", "\(try await self.reflecting())/\(Self.service)/Echo", "--callers", "2", "--duration", "2s"]
    )
    try await terminal.waitFor(" calls/s  p50 ")
    process.waitUntilExit()
    XCTAssertEqual(process.terminationStatus, 0, terminal.text)
    try await terminal.waitFor("over time")
  }

  /// The chart of a call is as wide as the terminal.
  func testExplainedOnATerminal() async throws {
    let terminal = try Terminal(columns: 120)
    let process = try terminal.run(
      "connectrpc",
      ["call", "\(try await self.reflecting())/\(Self.service)/Echo", "-d", "{}", "--explain"]
    )
    try await terminal.waitFor("of messages")
    process.waitUntilExit()
    XCTAssertEqual(process.terminationStatus, 0, terminal.text)
    let lines = terminal.text.split(whereSeparator: \.isNewline)
    let line = try XCTUnwrap(lines.first { $0.hasPrefix("  first byte") }, terminal.text)
    XCTAssertEqual(line.count, 120)
  }

  /// Headers reach the server's reflection, too, which may want credentials.
  func testHeadersReachReflection() async throws {
    let server = try await LoopbackServer.start()
    let path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
    let headers = [
      "-H", "authorization: Bearer t0k3n", "-H", "x-list: a", "-H", "x-list: b", "-H", "x-bytes-bin: AAE=",
    ]
    let url = "\(server.url)/\(Self.service)/Echo"
    let commands = [
      ["list", server.url], ["describe", server.url, Self.service], ["call", url],
      ["load", url, "--count", "1"],
    ]
    for command in commands {
      let count = server.requests.count { $0.path == path }
      let output = try await self.connectrpc(command + headers + ["--protocol", "grpc"])
      XCTAssertEqual(output.status, 64 + 12, "\(command): \(output.error)")
      let requests = server.requests.filter { $0.path == path }.dropFirst(count)
      XCTAssertEqual(requests.count, 1, "\(command)")
      for request in requests {
        XCTAssertEqual(request.headers.first("authorization"), "Bearer t0k3n", "\(command)")
        XCTAssertEqual(request.headers["x-list"], ["a", "b"], "\(command)")
        XCTAssertEqual(request.headers.first("x-bytes-bin"), "AAE=", "\(command)")
      }
    }
    await server.stop()
  }

  // MARK: Load and doctor

  func testLoad() async throws {
    let url = "\(try await self.reflecting())/\(Self.service)/Echo"
    let output = try await self.connectrpc("load", url, "--count", "200", "--callers", "8", "--json")
    XCTAssertEqual(output.status, 0, output.error)
    let report = try XCTUnwrap(
      try JSONSerialization.jsonObject(with: Data(output.text.utf8)) as? [String: Any]
    )
    XCTAssertEqual(report["calls"] as? Int, 200)
    XCTAssertEqual(report["codes"] as? [String: Int], ["ok": 200])
    let open = try await self.connectrpc("load", url, "--count", "50", "--rate", "200", "--protocol", "grpc")
    XCTAssertEqual(open.status, 0, open.error)
    XCTAssertTrue(open.text.hasPrefix("50 calls in "), open.text)
    let timed = try await self.connectrpc("load", url, "--rate", "100", "--duration", "1s")
    XCTAssertTrue(timed.text.hasPrefix("100 calls in "), timed.text + timed.error)
    let ramped = try await self.connectrpc(
      "load",
      url,
      "--callers",
      "4",
      "--ramp",
      "1h",
      "--duration",
      "300ms",
      "--json"
    )
    XCTAssertEqual(ramped.status, 0, ramped.error)
    for loops in [1, 2] {
      let spread = try await self.connectrpc(
        "load",
        url,
        "--count",
        "100",
        "--loops",
        "\(loops)",
        "--http",
        "2",
        "--json"
      )
      XCTAssertEqual(spread.status, 0, spread.error)
      let report = try XCTUnwrap(
        try JSONSerialization.jsonObject(with: Data(spread.text.utf8)) as? [String: Any]
      )
      let addresses = try XCTUnwrap(report["addresses"] as? [[String: Any]])
      XCTAssertEqual(addresses.map { $0["calls"] as? Int }, [100])
      XCTAssertEqual(addresses.map { $0["connections"] as? Int }, [loops])
      XCTAssertGreaterThan(try XCTUnwrap(report["responseBytes"] as? Int), 0)
    }
    let failing = try await self.connectrpc("load", "\(url.dropLast(4))Unimplemented", "--count", "5")
    XCTAssertEqual(failing.status, 1)
    XCTAssertTrue(failing.text.contains("unimplemented"), failing.text)
  }

  func testDoctor() async throws {
    let healthy = try await self.connectrpc("doctor", try await self.reflecting())
    XCTAssertEqual(healthy.status, 0, healthy.text)
    XCTAssertTrue(healthy.text.contains("ok  grpc "), healthy.text)
    XCTAssertTrue(healthy.text.contains(Self.service), healthy.text)
    let down = try await self.connectrpc("doctor", "http://127.0.0.1:1")
    XCTAssertEqual(down.status, 64 + 14)
    XCTAssertTrue(down.text.contains("NO  tcp"), down.text)
    let web = try await PythonServer.shared(.web)
    let wrong = try await self.connectrpc("doctor", "http://127.0.0.1:\(try web.port("http"))")
    XCTAssertTrue([1, 64 + 14].contains(wrong.status), wrong.text)
    XCTAssertFalse(wrong.text.contains("ok  connect"), wrong.text)
    let port = try await PythonServer.shared(.reflection).port("both")
    let resolved = try await self.connectrpc(
      "doctor",
      "http://a.invalid:\(port)",
      "--resolve",
      "a.invalid=127.0.0.1"
    )
    XCTAssertEqual(resolved.status, 0, resolved.text)
    let proxied = try ChildProcess(
      product: "connectrpc",
      arguments: ["doctor", "http://a.invalid"],
      environment: ["http_proxy": "http://127.0.0.1:1", "no_proxy": ""]
    )
    let text = String(decoding: try await proxied.readAll(), as: UTF8.self)
    XCTAssertTrue(text.contains("ok  proxy"), text)
    XCTAssertFalse(text.contains("name "), text)
  }

  /// What `make install` puts in place.
  func testManualAndCompletions() async throws {
    let manual = try await self.connectrpc("manual")
    XCTAssertTrue(manual.text.hasPrefix(".Dd "), manual.text)
    for part in [".Sh LIST", ".Sh DESCRIBE", ".Sh CALL", ".Sh LOAD", ".Sh DOCTOR", "\\-\\-import\\-path"] {
      XCTAssertTrue(manual.text.contains(part), part)
    }
    XCTAssertFalse(manual.text.contains(".Sh MANUAL"))
    for shell in ["bash", "zsh", "fish"] {
      let script = try await self.connectrpc("--generate-completion-script", shell)
      XCTAssertEqual(script.status, 0, script.error)
      XCTAssertTrue(script.text.contains("doctor"), shell)
    }
  }

  func testVersion() async throws {
    let program = try await self.connectrpc("--version")
    XCTAssertEqual(program.status, 0, program.error)
    XCTAssertNotNil(program.text.wholeMatch(of: /\d+\.\d+\.\d+\n/), program.text)
  }

  func testHelp() async throws {
    for arguments in [
      ["--help"], ["call", "--help"], ["load", "--help"], ["doctor", "--help"], ["whatif", "--help"],
    ] {
      let process = try ChildProcess(product: "connectrpc", arguments: arguments)
      let text = try await process.readAll()
      XCTAssertGreaterThan(text.count, 500)
      let status = try await process.exitStatus()
      XCTAssertEqual(status, 0)
    }
  }
}
