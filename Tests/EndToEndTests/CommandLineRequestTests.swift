internal import Connect
internal import Foundation
internal import LoopbackServer
internal import SwiftProtobuf
internal import TestSupport
internal import XCTest

/// What `connectrpc` makes of what it is given: nothing is left out in silence.
final class CommandLineRequestTests: XCTestCase {
  private static let service = "connect.test.v1.TestService"

  /// Runs a command on a server in this process, whose types are in a file.
  private func withServer(_ body: (_ url: String, _ options: [String]) async throws -> Void) async throws {
    let server = try await LoopbackServer.start()
    do {
      try await body("\(server.url)/\(Self.service)", ["--schema", try await self.descriptorSet()])
    } catch {
      await server.stop()
      throw error
    }
    await server.stop()
  }

  // MARK: Data

  func testSeveralData() async throws {
    try await self.withServer { url, options in
      let file = try self.temporaryFile("\u{feff}{\"number\": 10}\n{\"number\": 20}\n")
      for (arguments, input, sum) in [
        (["-d", #"{"number": 3}"#, "-d", #"{"number": 4}"#], "", "7"),
        (["-d", #"{"number": 3} {"number": 4}"#, "-d", "@\(file)", "--data", "{}"], "", "37"),
        (["-d", "@-", "-d", #"{"number": 4}"#], #"{"number": 5}"#, "9"),
        (["-d", "@"], #"{"number": 5}"#, "5"),
      ] {
        let output = try await self.connectrpc(["call", "\(url)/Sum"] + options + arguments, input: input)
        XCTAssertEqual(output.status, 0, "\(arguments): \(output.error)")
        XCTAssertTrue(output.text.contains(#""sum":"\#(sum)""#), "\(arguments): \(output.text)")
      }
      for (arguments, part) in [
        (["call", "\(url)/Echo", "-d", "{}", "-d", "{}"], "takes one request"),
        (["call", "\(url)/Count", "-d", "{}", "-d", "{}"], "takes one request"),
        (["load", "\(url)/Echo", "-n", "1", "-d", "{}", "-d", "{}"], "there are several"),
        (["call", "\(url)/Sum", "-d", "@", "-d", "@-"], "more than one -d names it"),
        (["call", "\(url)/Sum", "-d", #"{"number""#, "-d", ": 1}"], "request message 1"),
      ] {
        let output = try await self.connectrpc(arguments + options)
        XCTAssertEqual(output.status, 64, "\(arguments): \(output.error)")
        XCTAssertTrue(output.error.contains(part), "\(arguments): \(output.error)")
      }
    }
  }

  func testInputThatIsNotRead() async throws {
    let note = "note: standard input is not read without -d @-"
    try await self.withServer { url, options in
      for (arguments, input, isNoted) in [
        (["call", "\(url)/Echo"], "{}", true), (["call", "\(url)/Count"], "{}", true),
        (["call", "\(url)/Unimplemented"], "{}", true), (["load", "\(url)/Echo", "-n", "1"], "{}", true),
        (["call", "\(url)/Echo"], "", false), (["call", "\(url)/Echo", "-d", "{}"], "{}", false),
        (["call", "\(url)/Echo", "-d", "@-"], "{}", false), (["call", "\(url)/Sum"], "{}", false),
      ] {
        let output = try await self.connectrpc(arguments + options, input: input)
        XCTAssertEqual(output.error.contains(note), isNoted, "\(arguments), '\(input)': \(output.error)")
        XCTAssertEqual(output.status, arguments[1].hasSuffix("Unimplemented") ? 64 + 12 : 0, output.error)
      }
      // A file, and what is none.
      let file = try self.temporaryFile("{}")
      for (redirection, isNoted) in [("<'\(file)'", true), ("</dev/null", false), ("<&-", false)] {
        let process = try ChildProcess(
          URL(filePath: "/bin/sh"),
          arguments: [
            "-c", "\"$0\" call \"$1\" --schema \"$2\" \(redirection)", CommandLineProgram.path, "\(url)/Echo",
            options[1],
          ]
        )
        let status = try await process.exitStatus(within: .seconds(60))
        XCTAssertEqual(status, 0, process.errorOutput)
        XCTAssertEqual(process.errorOutput.contains(note), isNoted, "\(redirection): \(process.errorOutput)")
      }
    }
  }

  // MARK: GET

  func testGET() async throws {
    let port = try await PythonServer.shared(.connect).port("http")
    let url = "http://127.0.0.1:\(port)/\(Self.service)"
    let schema = ["--schema", try await self.descriptorSet()]
    for options in [[], ["-p", "connect"], ["--codec", "json"], ["--compress"]] {
      let arguments = ["call", "\(url)/Lookup", "--get", "-v", "-d", #"{"key": "a"}"#] + schema + options
      let output = try await self.connectrpc(arguments)
      XCTAssertEqual(output.status, 0, "\(options): \(output.error)")
      XCTAssertTrue(output.text.contains(#""httpMethod":"GET""#), "\(options): \(output.text)")
      let sent = output.error.split(separator: "\n").filter { $0.hasPrefix("> ") }
      let encoding = options == ["--codec", "json"] ? "json" : "proto"
      let line = "> GET \(url)/Lookup?connect=v1"
      XCTAssertTrue(sent.first?.hasPrefix(line) == true, "\(options): \(sent)")
      XCTAssertTrue(sent.first?.contains("encoding=\(encoding)") == true, "\(options): \(sent)")
      XCTAssertEqual(sent.first?.contains("compression=gzip"), options == ["--compress"], "\(sent)")
      XCTAssertFalse(sent.contains { $0.contains("content-type") }, "\(options): \(sent)")
    }
    let post = try await self.connectrpc(["call", "\(url)/Lookup", "-v", "-p", "connect"] + schema)
    XCTAssertTrue(
      post.error.contains("> POST \(url)/Lookup\n> content-type: application/proto\n"),
      post.error
    )
    for (method, options, part) in [
      ("Lookup", ["-p", "grpc"], "--get is of the Connect protocol"),
      ("Lookup", ["-p", "grpc-web"], "--get is of the Connect protocol"),
      ("Count", [], "--get is for unary calls"), ("Sum", [], "--get is for unary calls"),
      ("Echo", [], "NO_SIDE_EFFECTS"),
    ] {
      let output = try await self.connectrpc(["call", "\(url)/\(method)", "--get"] + schema + options)
      XCTAssertEqual(output.status, 64, "\(method) \(options): \(output.error)")
      XCTAssertTrue(output.error.contains(part), "\(method) \(options): \(output.error)")
    }
  }

  // MARK: Headers and output

  func testBlanksAroundValues() async throws {
    try await self.withServer { url, options in
      let output = try await self.connectrpc(
        ["call", " \(url)/Echo", "-H", "X-A: v ", "-H", "x-b:\t w \t", "-H", "x-bytes-bin: AAE= "] + options
      )
      XCTAssertEqual(output.status, 0, output.error)
      for field in [
        #"{"name":"x-a","values":["v"]}"#, #"{"name":"x-b","values":["w"]}"#,
        #"{"name":"x-bytes-bin","values":["AAE="]}"#,
      ] {
        XCTAssertTrue(output.text.contains(field), output.text)
      }
    }
  }

  func testDefaultsThatArePrinted() async throws {
    try await self.withServer { url, options in
      let arguments = ["call", "\(url)/Lookup", "-d", #"{"key": "a"}"#] + options
      let plain = try await self.connectrpc(arguments)
      XCTAssertFalse(plain.text.contains("padding"), plain.text)
      let whole = try await self.connectrpc(arguments + ["--emit-defaults"])
      XCTAssertEqual(whole.status, 0, whole.error)
      XCTAssertTrue(whole.text.contains(#""padding":""}"#), whole.text)
      let names = try await self.connectrpc(arguments + ["--emit-defaults", "--proto-names", "--pretty"])
      XCTAssertTrue(names.lines.contains { $0.contains(#""message_count": "#) }, names.text)
    }
  }

  // MARK: Options

  /// Each is an error, or a note.
  func testOptionsWithoutEffect() async throws {
    try await self.withServer { url, options in
      for (arguments, part) in [
        (["call", "\(url)/Echo", "-I", "/tmp"], "--import-path"),
        (["call", "\(url)/Echo", "-I", "/tmp"] + options, "--import-path"),
        (["call", "\(url)/Echo", "--redact-header", "x-a"] + options, "--record and --replay"),
        (["call", "\(url)/Echo", "--redact-field", "a"] + options, "--record and --replay"),
        (["load", "\(url)/Echo", "--rate", "5", "--callers", "3"] + options, "--rate or --callers"),
        (["list", Self.service, Self.service] + options, "say which service"),
        (["describe", Self.service, Self.service] + options, "say which symbol"),
      ] {
        let output = try await self.connectrpc(arguments)
        XCTAssertEqual(output.status, 64, "\(arguments): \(output.error)")
        XCTAssertEqual(output.text, "", "\(arguments)")
        XCTAssertTrue(output.error.contains(part), "\(arguments): \(output.error)")
      }
      let insecure = try await self.connectrpc(["call", "\(url)/Echo", "-k", "--servername", "a"] + options)
      XCTAssertEqual(insecure.status, 0, insecure.error)
      XCTAssertEqual(insecure.error, "note: no effect of --servername, --insecure: http:// has no TLS\n")
    }
  }

  /// The sets are put together.
  func testSeveralSchemas() async throws {
    let own = try self.temporaryFile("syntax = \"proto3\"; package acme; message Own {} service Owns {}")
    let set = FileManager.default.temporaryDirectory.appending(path: "\(UUID()).binpb").path()
    self.addTeardownBlock { try? FileManager.default.removeItem(atPath: set) }
    let protoc = try ChildProcess(
      URL(filePath: "/usr/bin/env"),
      arguments: ["protoc", "--descriptor_set_out=\(set)", "-I", "/", own]
    )
    let status = try await protoc.exitStatus()
    XCTAssertEqual(status, 0, protoc.errorOutput)
    let output = try await self.connectrpc(
      "list",
      "--schema",
      try await self.descriptorSet(),
      "--schema",
      set
    )
    XCTAssertEqual(output.lines, ["acme.Owns", Self.service], output.error)
  }

  func testShortOptionsOfLoads() async throws {
    try await self.withServer { url, options in
      let output = try await self.connectrpc(
        ["load", "\(url)/Echo", "-n", "20", "-c", "2", "--json"] + options
      )
      XCTAssertEqual(output.status, 0, output.error)
      let report = try JSONSerialization.jsonObject(with: Data(output.text.utf8)) as? [String: Any]
      XCTAssertEqual(report?["calls"] as? Int, 20)
    }
  }

  // MARK: Names

  /// As `describe` prints them, and more.
  func testShortNames() async throws {
    let server = ["describe", try await self.reflecting()]
    let local = ["describe", "--schema", try await self.descriptorSet()]
    for command in [server, local] {
      for (symbol, part) in [
        ("LookupRequest", "message LookupRequest {\n  string key = 1;"),
        ("v1.LookupRequest", "message LookupRequest {"), ("TestService", "service TestService {"),
        ("TestService/Lookup", "rpc Lookup("), ("Payload.text", "string text = 1;"),
        ("connect.test.v1", "service TestService {"),
        ("connect/test/v1/test.proto", "package connect.test.v1;"),
        ("connect.test.v1.TestService/Echo", "rpc Echo("),
      ] {
        let output = try await self.connectrpc(command + [symbol])
        XCTAssertEqual(output.status, 0, "\(command) \(symbol): \(output.error)")
        XCTAssertTrue(output.text.contains(part), "\(command) \(symbol): \(output.text)")
      }
      let all = try await self.connectrpc(command)
      XCTAssertEqual(all.status, 0, all.error)
      for part in ["// connect/test/v1/test.proto\n", "service TestService {", "message LookupRequest {"] {
        XCTAssertTrue(all.text.contains(part), all.text)
      }
      let json = try await self.connectrpc(command + ["--json"])
      let set = try JSONSerialization.jsonObject(with: Data(json.text.utf8)) as? [String: Any]
      XCTAssertNotNil(set?["file"], json.text)
      let none = try await self.connectrpc(command + ["Nothing"])
      XCTAssertTrue([64, 64 + 5].contains(none.status), none.error)
      XCTAssertTrue(none.error.contains("Nothing"), none.error)
    }
    for command in [["list", server[1]], ["list", "--schema", local[2]]] {
      let methods = try await self.connectrpc(command + ["TestService"])
      XCTAssertTrue(methods.lines.contains("\(Self.service)/Echo"), "\(command): \(methods.error)")
      let none = try await self.connectrpc(command + ["Service"])
      XCTAssertNotEqual(none.status, 0, none.text)
    }
    let nothing = try await self.connectrpc("describe")
    XCTAssertEqual(nothing.status, 64)
    XCTAssertTrue(nothing.error.contains("say URL and symbol"), nothing.error)
  }

  func testNamesOfSeveralTypes() async throws {
    let text = "syntax = \"proto3\"; package acme; message A { message M {} } message B { message M {} }"
    let file = try self.temporaryFile(text)
    let arguments = ["describe", "--proto", file, "-I", "/"]
    let both = try await self.connectrpc(arguments + ["M"])
    XCTAssertEqual(both.status, 64, both.error)
    XCTAssertTrue(both.error.contains("M may be acme.A.M or acme.B.M: say which"), both.error)
    let one = try await self.connectrpc(arguments + ["B.M"])
    XCTAssertEqual(one.text, "message M {}\n", one.error)
  }

  /// The server has a file of only one of the services that it lists.
  func testDescribingAServerThatLacksAFile() async throws {
    let server = try await LoopbackServer.start()
    ReflectionAnswer.serve(server) { question in
      if question.contains("acme.Here") {
        return .files([
          .with {
            $0.name = "acme.proto"
            $0.package = "acme"
            $0.service = [.with { $0.name = "Here" }]
          }
        ])
      }
      return question.contains("acme.Ghost")
        ? .error(.notFound, "none") : .services(["acme.Here", "acme.Ghost"])
    }
    let output = try await self.connectrpc("describe", server.url, "-p", "connect")
    await server.stop()
    XCTAssertEqual(output.status, 0, output.error)
    XCTAssertTrue(output.text.contains("service Here {"), output.text)
    XCTAssertTrue(output.error.contains("the server lists acme.Ghost"), output.error)
  }
}
