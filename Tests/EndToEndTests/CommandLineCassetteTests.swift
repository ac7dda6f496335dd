internal import Connect
internal import Foundation
internal import FoundationNetworking
internal import Glibc
internal import LoopbackServer
internal import SwiftProtobuf
internal import TestSupport
internal import XCTest

/// `connectrpc record` and `connectrpc replay`, with servers and clients of others.
final class CommandLineCassetteTests: XCTestCase {
  private static let service = "connect.test.v1.TestService"
  private static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..")
    .standardized

  /// A path in a folder of the test's own.
  private func file(_ name: String = "calls.json") throws -> String {
    let folder = FileManager.default.temporaryDirectory.appending(path: "\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    self.addTeardownBlock { try? FileManager.default.removeItem(at: folder) }
    return folder.appending(path: name).path()
  }

  private func text(of file: String) throws -> String { try String(contentsOfFile: file, encoding: .utf8) }

  // MARK: Clients

  private static let requests: [(method: String, data: String)] = [
    ("Echo", #"{"payload": {"text": "ä", "counts": {"a": "1"}}}"#),
    ("Count", #"{"from": "5", "instruction": {"messageCount": 3}}"#),
    ("Sum", #"{"number": "3"} {"number": "4"}"#),
    ("Converse", #"{"payload": {"text": "a"}} {"payload": {"text": "b"}}"#),
    ("Echo", #"{"instruction": {"failure": {"code": "CODE_NOT_FOUND", "message": "none"}}}"#),
  ]

  /// Calls all kinds of methods with `connectrpc call`.
  private func call(_ url: String, _ networkProtocol: String, _ schema: String? = nil) async throws
    -> [ProgramOutput]
  {
    var outputs: [ProgramOutput] = []
    for (method, data) in Self.requests {
      let process = try ChildProcess(
        product: "connectrpc",
        arguments: ["call", "\(url)/\(Self.service)/\(method)", "-d", data, "--protocol", networkProtocol]
          + (schema.map { ["--schema", $0] } ?? []),
        environment: ["NO_COLOR": "1"]
      )
      outputs.append(try await self.output(of: process))
    }
    return outputs
  }

  private func buf(_ url: String, _ networkProtocol: String, _ schema: String) async throws -> [ProgramOutput]
  {
    var outputs: [ProgramOutput] = []
    for (method, data) in Self.requests {
      let process = try ChildProcess(
        Self.root.appending(path: ".venv/bin/buf"),
        arguments: [
          "curl", "--http2-prior-knowledge", "--schema", schema, "-d", data, "--protocol",
          networkProtocol.replacing("-", with: ""), "\(url)/\(Self.service)/\(method)",
        ]
      )
      outputs.append(try await self.output(of: process))
    }
    return outputs
  }

  /// Calls all kinds of methods with grpcio.
  private func grpcio(_ url: String) async throws -> ProgramOutput {
    let process = try ChildProcess(
      Self.root.appending(path: ".venv/bin/python"),
      arguments: [
        "-B", Self.root.appending(path: "Tests/EndToEndTests/Servers/grpc_client.py").path(),
        String(url.dropFirst("http://".count)),
      ],
      environment: ["CONNECT_TEST_GENERATED": Self.root.appending(path: ".venv/generated").path()]
    )
    return try await self.output(of: process)
  }

  private func output(of process: ChildProcess) async throws -> ProgramOutput {
    try process.closeInput()
    let text = String(decoding: try await process.readAll(), as: UTF8.self)
    let status = try await process.exitStatus(within: patience)
    return ProgramOutput(text: text, error: process.errorOutput, status: status)
  }

  private func check(_ outputs: [ProgramOutput], line: UInt = #line) {
    XCTAssertEqual(outputs.dropLast().map(\.status), [0, 0, 0, 0], "\(outputs)", line: line)
    XCTAssertTrue(outputs.last?.error.contains("not_found") == true, "\(outputs)", line: line)
    XCTAssertNotEqual(outputs.last?.status, 0, line: line)
  }

  // MARK: Recording and replaying

  func testCallsOfAGRPCServerAreReplayed() async throws {
    let port = try await PythonServer.shared(.reflection).port("both")
    let (file, schema) = (try self.file(), try await self.descriptorSet())
    let proxy = try await ListeningProgram.start("record", file, "--to", "http://127.0.0.1:\(port)")
    let called = try await self.call(proxy.url, "auto")
    let curled = try await self.buf(proxy.url, "grpc", schema)
    let theirs = try await self.grpcio(proxy.url)
    let recorded = try await proxy.stop()
    self.check(called)
    self.check(curled)
    XCTAssertEqual(theirs.status, 0, theirs.error)
    XCTAssertEqual(theirs.lines.count, 9, theirs.text)
    XCTAssertEqual(theirs.lines.suffix(2).filter { $0 == "NOT_FOUND none x-trailer" }.count, 2, theirs.text)
    XCTAssertEqual(recorded.status, 0, recorded.error)
    XCTAssertTrue(recorded.error.contains("recorded 21 calls to \(file)"), recorded.error)
    XCTAssertTrue(recorded.error.contains("  3 /\(Self.service)/Converse\n"), recorded.error)
    XCTAssertTrue(try self.text(of: file).contains(#"{"json": {"number": "3"}}"#))

    let server = try await ListeningProgram.start("replay", file, "--all")
    let calledAgain = try await self.call(server.url, "auto")
    let curledAgain = try await self.buf(server.url, "grpc", schema)
    let theirsAgain = try await self.grpcio(server.url)
    let replayed = try await server.stop(SIGINT)
    XCTAssertEqual(calledAgain, called)
    XCTAssertEqual(curledAgain, curled)
    XCTAssertEqual(theirsAgain, theirs)
    XCTAssertEqual(replayed.status, 0, replayed.error)
    XCTAssertTrue(
      replayed.error.contains("replayed 16 of 16 calls, besides 5 calls of server reflection"),
      replayed.error
    )
  }

  /// Over HTTP/1.1 and HTTP/2, with messages of all protocols.
  func testCallsOfAConnectServerAreReplayed() async throws {
    let port = try await PythonServer.shared(.connect).port("http")
    let (file, schema) = (try self.file(), try await self.descriptorSet())
    let protocols = ["connect", "grpc", "grpc-web"]
    let proxy = try await ListeningProgram.start(
      "record",
      file,
      "--to",
      "http://127.0.0.1:\(port)",
      "--schema",
      schema
    )
    var live: [[ProgramOutput]] = []
    for name in protocols {
      live.append(try await self.call(proxy.url, name, schema))
      live.append(try await self.buf(proxy.url, name, schema))
    }
    for outputs in live { self.check(outputs) }
    let recorded = try await proxy.stop()
    XCTAssertEqual(recorded.status, 0, recorded.error)
    let text = try self.text(of: file)
    XCTAssertTrue(text.contains(#""over": "HTTP/1.1""#) && text.contains(#""over": "HTTP/2""#))

    let server = try await ListeningProgram.start("replay", file, "--all", "--count", "30")
    var replayed: [[ProgramOutput]] = []
    for name in protocols {
      replayed.append(try await self.call(server.url, name, schema))
      replayed.append(try await self.buf(server.url, name, schema))
    }
    XCTAssertEqual(replayed, live)
    let end = try await server.end()
    XCTAssertEqual(end.status, 0, end.error)
  }

  /// The responses of a stream that a signal has ended are in the cassette.
  func testAnInterruptedCallIsRecorded() async throws {
    let port = try await PythonServer.shared(.reflection).port("both")
    let file = try self.file()
    let process = try ChildProcess(
      product: "connectrpc",
      arguments: [
        "call", "http://127.0.0.1:\(port)/\(Self.service)/Converse", "--protocol", "grpc", "--record", file,
        "--no-pretty",
      ],
      environment: ["NO_COLOR": "1"]
    )
    try await process.write(Data("{\"payload\": {\"text\": \"a\"}}\n".utf8))
    // Most of the first response. Standard input stays open, so that only the signal ends the call.
    let start = try await process.read(20)
    process.signal(SIGINT)
    let rest = try await process.readAll()
    let status = try await process.exitStatus(within: patience)
    XCTAssertEqual(status, 65, process.errorOutput)
    XCTAssertTrue(process.errorOutput.contains("recorded 1 call to \(file)"), process.errorOutput)
    XCTAssertTrue(process.errorOutput.contains("canceled"), process.errorOutput)
    let text = try self.text(of: file)
    // What was sent, and what was received.
    XCTAssertEqual(text.components(separatedBy: #""payload": {"text": "a"}"#).count, 3, text)
    XCTAssertTrue(text.contains(#""receive""#) && text.contains(#""cancel": {}"#), text)
    XCTAssertTrue(String(decoding: start + rest, as: UTF8.self).contains(#""text":"a""#))
  }

  /// There is nothing to record yet, so the signal ends the program.
  func testASignalBeforeTheRequestIsThere() async throws {
    let file = try self.file()
    let port = try await PythonServer.shared(.reflection).port("both")
    let process = try ChildProcess(
      product: "connectrpc",
      arguments: [
        "call", "http://127.0.0.1:\(port)/\(Self.service)/Echo", "--protocol", "grpc", "--record", file,
        "-d", "@-",
      ],
      environment: ["NO_COLOR": "1"]
    )
    // More than a pipe holds: once it is written, the program is reading its request.
    try await process.write(Data(repeating: UInt8(ascii: " "), count: 1 << 20))
    process.signal(SIGINT)
    _ = try await process.readAll()
    let status = try await process.exitStatus(within: patience)
    XCTAssertEqual(status, -SIGINT, process.errorOutput)
  }

  /// Without types messages are base64, which is said.
  func testMessagesWithoutTypes() async throws {
    let port = try await PythonServer.shared(.reflection).port("off")
    let (file, schema) = (try self.file(), try await self.descriptorSet())
    let proxy = try await ListeningProgram.start(
      "record",
      file,
      "--to",
      "http://127.0.0.1:\(port)",
      "--redact-header",
      "X-Secret",
      "--count",
      "1"
    )
    let arguments = ["--schema", schema, "-d", #"{"payload": {"text": "x"}}"#, "-H", "x-secret: 12345"]
    func echo(_ url: String) async throws -> ProgramOutput {
      try await self.output(
        of: try ChildProcess(
          product: "connectrpc",
          arguments: ["call", "\(url)/\(Self.service)/Echo"] + arguments
        )
      )
    }
    let live = try await echo(proxy.url)
    let recorded = try await proxy.end()
    XCTAssertTrue(recorded.error.contains("messages are recorded in base64"), recorded.error)
    let text = try self.text(of: file)
    XCTAssertTrue(text.contains(#""send": {"base64": "#), text)
    XCTAssertFalse(text.contains("\"schema\""), text)
    XCTAssertTrue(text.contains(#""x-secret": "REDACTED""#), text)
    XCTAssertEqual(live.status, 0, live.error)
    XCTAssertEqual(recorded.status, 0, recorded.error)
  }

  /// The server shows a secret in a message that is not known, and so cannot be redacted.
  func testASecretThatCannotBeRedacted() async throws {
    let port = try await PythonServer.shared(.reflection).port("off")
    let (file, schema) = (try self.file(), try await self.descriptorSet())
    let proxy = try await ListeningProgram.start(
      "record",
      file,
      "--to",
      "http://127.0.0.1:\(port)",
      "--count",
      "1"
    )
    let url = "\(proxy.url)/\(Self.service)/Echo"
    let live = try await self.connectrpc(
      "call",
      url,
      "--schema",
      schema,
      "-H",
      "authorization: Bearer 12345678"
    )
    XCTAssertEqual(live.status, 0, live.error)
    let recorded = try await proxy.end()
    XCTAssertEqual(recorded.status, 1, recorded.error)
    XCTAssertTrue(recorded.error.contains("not recorded: /\(Self.service)/Echo"), recorded.error)
    XCTAssertFalse(try self.text(of: file).contains("12345678"))
  }

  func testASingleCall() async throws {
    let file = try self.file()
    let url = "http://127.0.0.1:\(try await PythonServer.shared(.reflection).port("both"))/\(Self.service)"
    let data = #"{"payload": {"text": "x"}}"#
    let live = try await self.connectrpc("call", "\(url)/Echo", "-d", data, "--record", file)
    XCTAssertEqual(live.status, 0, live.error)
    XCTAssertTrue(live.error.contains("recorded 1 call to \(file)"), live.error)
    let dead = "http://127.0.0.1:1/\(Self.service)/Echo"
    let replayed = try await self.connectrpc("call", dead, "-d", data, "--replay", file)
    XCTAssertEqual(replayed.status, 0, replayed.error)
    XCTAssertEqual(replayed.text, live.text)
    let other = try await self.connectrpc("call", dead, "-d", "{}", "--replay", file)
    // As through `replay`.
    XCTAssertEqual(other.status, 64 + 9, other.error)
    let difference = "\n  - {\"payload\": {\"text\": \"x\"}}\n  + {}\n"
    XCTAssertTrue(other.error.contains(difference), other.error)
    let both = try await self.connectrpc("call", dead, "--replay", file, "--record", file)
    XCTAssertEqual(both.status, 64)
  }

  /// An error says what was asked and what comes next; `--all` makes it one of the server, too.
  func testCallsThatAreNotThere() async throws {
    let (file, schema) = (try self.file(), try await self.descriptorSet())
    let url = "http://127.0.0.1:\(try await PythonServer.shared(.reflection).port("both"))/\(Self.service)"
    let data = #"{"payload": {"text": "x"}}"#
    _ = try await self.connectrpc("call", "\(url)/Echo", "-d", data, "--record", file, "-p", "connect")
    _ = try await self.connectrpc("call", "\(url)/Echo", "-d", data, "--record", file, "-p", "grpc")
    let server = try await ListeningProgram.start("replay", file, "--all")
    for name in ["connect", "grpc", "grpc-web"] {
      for method in ["Count", "Lookup"] {
        let output = try await self.connectrpc(
          "call",
          "\(server.url)/\(Self.service)/\(method)",
          "--schema",
          schema,
          "-p",
          name
        )
        XCTAssertEqual(output.status, 64 + 9, output.error)
        let asked = "the cassette has no answer to /\(Self.service)/\(method) (\(name)+proto)"
        XCTAssertTrue(output.error.contains(asked), output.error)
        let call = #"- /\#(Self.service)/Echo (grpc+proto): {"payload":{"text":"x"}}"#
        XCTAssertTrue(output.error.contains("not asked yet:\n  \(call)\n"), output.error)
      }
    }
    let end = try await server.stop()
    XCTAssertEqual(end.status, 1, end.error)
    XCTAssertTrue(end.error.contains("\nthe cassette has no answer to"), end.error)
    XCTAssertTrue(end.error.contains("not asked yet:\n  - /"), end.error)
    XCTAssertTrue(end.error.contains("replayed 0 of 1 call"), end.error)
    XCTAssertTrue(end.error.contains("1 recorded calls were not asked, 6 were asked"), end.error)
  }

  /// The proxy has recorded what `call` asks the server's reflection. With a schema, it does not ask.
  func testReflectionIsNotMissed() async throws {
    let port = try await PythonServer.shared(.reflection).port("both")
    let (file, schema) = (try self.file(), try await self.descriptorSet())
    let proxy = try await ListeningProgram.start("record", file, "--to", "http://127.0.0.1:\(port)")
    let live = try await self.call(proxy.url, "grpc")
    let recorded = try await proxy.stop()
    self.check(live)
    XCTAssertTrue(recorded.error.contains("ServerReflectionInfo"), recorded.error)
    let server = try await ListeningProgram.start("replay", file, "--all")
    let replayed = try await self.call(server.url, "grpc", schema)
    let end = try await server.stop()
    XCTAssertEqual(replayed, live)
    XCTAssertEqual(end.status, 0, end.error)
    XCTAssertTrue(end.error.contains("replayed 5 of 5 calls, besides "), end.error)
    XCTAssertFalse(end.error.contains("not asked"), end.error)
  }

  func testRecordedTimes() async throws {
    let file = try self.file()
    let url = "http://127.0.0.1:\(try await PythonServer.shared(.reflection).port("both"))"
    let data = #"{"instruction": {"delayMs": 400}}"#
    let live = try await self.connectrpc(
      "call",
      "\(url)/\(Self.service)/Echo",
      "-d",
      data,
      "--record",
      file
    )
    XCTAssertEqual(live.status, 0, live.error)
    let server = try await ListeningProgram.start("replay", file, "--timing", "recorded", "--count", "1")
    let start = ContinuousClock.now
    let schema = try await self.descriptorSet()
    let output = try await self.connectrpc(
      "call",
      "\(server.url)/\(Self.service)/Echo",
      "-d",
      data,
      "--schema",
      schema
    )
    XCTAssertGreaterThanOrEqual(ContinuousClock.now - start, .milliseconds(400))
    XCTAssertEqual(output.text, live.text)
    let end = try await server.end()
    XCTAssertEqual(end.status, 0, end.error)
  }

  // MARK: Failures

  func testWhatCannotBeUsed() async throws {
    let taken = try await LoopbackServer.start()
    let (file, schema) = (try self.file(), try await self.descriptorSet())
    let folder = URL(filePath: file).deletingLastPathComponent().path()
    let (empty, broken) = ("\(folder)/empty.json", "\(folder)/broken.json")
    try "{}".write(toFile: empty, atomically: true, encoding: .utf8)
    try "x".write(toFile: broken, atomically: true, encoding: .utf8)
    let cassette = "\(folder)/cassette.json"
    try #"{"cassette": 1, "exchanges": []}"#.write(toFile: cassette, atomically: true, encoding: .utf8)
    for (arguments, part) in [
      (["record", file, "--to", "http://127.0.0.1:1", "--listen", "127.0.0.1:\(taken.port)"], "in use"),
      (["replay", cassette, "--listen", "127.0.0.1:\(taken.port)"], "127.0.0.1:\(taken.port)"),
      (["record", "\(broken)/x.json", "--to", "http://127.0.0.1:1"], "cannot write the cassette"),
      (["record", folder, "--to", "http://127.0.0.1:1"], "cannot write the cassette"),
      (["record", "/dev/null", "--to", "http://127.0.0.1:1"], "cannot write the cassette"),
      (["record", "", "--to", "http://127.0.0.1:1"], "cannot write the cassette"),
      (["record", "\(folder)/none/../../nothing/x.json", "--to", "127.0.0.1:1"], "https://"),
      (["record", file, "--to", "http://name:password@127.0.0.1:1"], "127.0.0.1"),
      (
        ["record", file, "--to", "http://127.0.0.1:1", "--schema", schema, "--redact-field", "no.such"],
        "no.such"
      ),
      (["record", file, "--to", "127.0.0.1:1"], "https://"),
      (["record", file, "--to", "http://127.0.0.1:1", "--redact-field", "a..b"], "a..b"),
      (["replay", file], "cannot read the cassette"),
      (["replay", folder], "cannot read the cassette"),
      (["replay", empty], "\"cassette\" is missing"),
      (["replay", broken], "\(broken):1:1"),
      (["call", "http://127.0.0.1:1/a.B/C", "--replay", broken], "\(broken):1:1"),
      (["call", "http://127.0.0.1:1/a.B/C", "--record", folder], "cannot write the cassette"),
    ] {
      let output = try await self.output(of: try ChildProcess(product: "connectrpc", arguments: arguments))
      XCTAssertEqual(output.status, 64, "\(arguments): \(output.error)")
      XCTAssertTrue(output.error.contains(part), "\(arguments): \(output.error)")
    }
    await taken.stop()
    for arguments in [
      ["record", file], ["replay", file, "--listen", "1.2.3.4"], ["replay", file, "--count", "0"],
    ] {
      let output = try await self.output(of: try ChildProcess(product: "connectrpc", arguments: arguments))
      XCTAssertEqual(output.status, 64, "\(arguments): \(output.error)")
    }
  }

  /// A signal that comes as soon as the program says where it listens still makes it write.
  func testASignalRightAfterItListens() async throws {
    for _ in 0..<10 {
      let file = try self.file()
      let proxy = try await ListeningProgram.start("record", file, "--to", "http://127.0.0.1:1")
      let end = try await proxy.stop()
      XCTAssertEqual(end.status, 0, end.error)
      XCTAssertTrue(FileManager.default.fileExists(atPath: file))
    }
  }

  /// The file that a link leads to is replaced, and stays as private as it was.
  func testALinkAndPermissionsStay() async throws {
    let file = try self.file()
    let link = try self.file("link.json")
    XCTAssertTrue(
      FileManager.default.createFile(
        atPath: file,
        contents: Data("x".utf8),
        attributes: [.posixPermissions: 0o600]
      )
    )
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: file)
    let proxy = try await ListeningProgram.start("record", link, "--to", "http://127.0.0.1:1")
    let end = try await proxy.stop()
    XCTAssertEqual(end.status, 0, end.error)
    XCTAssertEqual(try FileManager.default.destinationOfSymbolicLink(atPath: link), file)
    XCTAssertTrue(try self.text(of: file).contains("\"cassette\""))
    let attributes = try FileManager.default.attributesOfItem(atPath: file)
    XCTAssertEqual((attributes[.posixPermissions] as? NSNumber)?.intValue, 0o600)
  }

  /// Requests that are no calls go through, and stay out of the file.
  func testWhatIsNoCallIsNotRecorded() async throws {
    let server = try await LoopbackServer.start()
    server.onRaw("/login") { _, responder in try await responder.respond(status: 204) }
    let file = try self.file()
    let proxy = try await ListeningProgram.start("record", file, "--to", server.url)
    var request = URLRequest(url: try XCTUnwrap(URL(string: "\(proxy.url)/login")))
    request.httpMethod = "POST"
    request.setValue("application/x-www-form-urlencoded", forHTTPHeaderField: "content-type")
    request.httpBody = Data("password=secret".utf8)
    let (_, response) = try await URLSession.shared.data(for: request)
    XCTAssertEqual((response as? HTTPURLResponse)?.statusCode, 204)
    let end = try await proxy.stop()
    XCTAssertEqual(end.status, 0, end.error)
    XCTAssertTrue(end.error.contains("recorded 0 calls"), end.error)
    XCTAssertFalse(try self.text(of: file).contains("login"))
    await server.stop()
  }

  /// A client that waits for `100 Continue` gets it, and then its answer.
  func testAClientThatWaitsToContinue() async throws {
    let server = try await LoopbackServer.start()
    let proxy = try await ListeningProgram.start("record", try self.file(), "--to", server.url)
    let port = try XCTUnwrap(proxy.url.split(separator: ":").last)
    let script = """
      import socket
      client = socket.create_connection(("127.0.0.1", \(port)), timeout=30)
      client.sendall(b"POST /\(Self.service)/Echo HTTP/1.1\\r\\nhost: a\\r\\ncontent-type: application/json\\r\\n"
                     b"content-length: 2\\r\\nexpect: 100-continue\\r\\n\\r\\n")
      head = b""
      while b"\\r\\n\\r\\n" not in head:
          head += client.recv(1)
      client.sendall(b"{}")
      print(head.split(b"\\r\\n")[0].decode(), client.recv(12).decode())
      """
    let program = try ChildProcess(URL(filePath: "/usr/bin/env"), arguments: ["python3", "-c", script])
    let text = String(decoding: try await program.readAll(), as: UTF8.self)
    XCTAssertEqual(text, "HTTP/1.1 100 Continue HTTP/1.1 200\n", program.errorOutput)
    let end = try await proxy.stop()
    XCTAssertEqual(end.status, 0, end.error)
    await server.stop()
  }

  /// What is added to each call may be a secret, whatever it is called.
  func testHeadersOfOptionsAreRedacted() async throws {
    let server = try await LoopbackServer.start()
    let file = try self.file()
    let proxy = try await ListeningProgram.start(
      "record",
      file,
      "--to",
      server.url,
      "--count",
      "1",
      "-H",
      "x-pass: open sesame"
    )
    try await withPlainClient(.http2, host: proxy.url) { client in
      let response = await client.unary(unaryMethod("/\(Self.service)/Echo"), EchoRequest())
      XCTAssertNil(response.error)
    }
    let end = try await proxy.end()
    XCTAssertFalse(try self.text(of: file).contains("open sesame"), end.error)
    await server.stop()
  }

  /// The caller gets `unavailable` in its protocol, at the replay as well.
  func testAServiceThatIsNotThere() async throws {
    let (file, schema) = (try self.file(), try await self.descriptorSet())
    let proxy = try await ListeningProgram.start(
      "record",
      file,
      "--to",
      "http://127.0.0.1:1",
      "--schema",
      schema
    )
    func fail(_ url: String) async throws -> [String] {
      var errors: [String] = []
      for name in ["connect", "grpc", "grpc-web"] {
        for method in ["Echo", "Count"] {
          let output = try await self.connectrpc(
            "call",
            "\(url)/\(Self.service)/\(method)",
            "--schema",
            schema,
            "-p",
            name
          )
          XCTAssertEqual(output.status, 64 + 14, "\(method) over \(name): \(output.error)")
          errors.append(output.error)
        }
      }
      return errors
    }
    let live = try await fail(proxy.url)
    XCTAssertTrue(live.allSatisfy { $0.contains("127.0.0.1:1") }, "\(live)")
    let recorded = try await proxy.stop()
    XCTAssertEqual(recorded.status, 0, recorded.error)
    let server = try await ListeningProgram.start("replay", file, "--all", "--count", "6")
    let replayed = try await fail(server.url)
    XCTAssertEqual(replayed, live)
    let end = try await server.end()
    XCTAssertEqual(end.status, 0, end.error)
  }

  /// Calls go through though there is no room for them.
  func testAFullCassette() async throws {
    let (file, large) = (try self.file(), try self.file("large.json"))
    let text = String(repeating: "x", count: 600_000)
    try #"{"payload": {"text": "\#(text)"}}"#.write(toFile: large, atomically: true, encoding: .utf8)
    let schema = try await self.descriptorSet()
    let port = try await PythonServer.shared(.reflection).port("off")
    let proxy = try await ListeningProgram.start(
      "record",
      file,
      "--to",
      "http://127.0.0.1:\(port)",
      "--max-size",
      "2",
      "--count",
      "4"
    )
    for _ in 0..<4 {
      let output = try await self.connectrpc(
        "call",
        "\(proxy.url)/\(Self.service)/Echo",
        "-d",
        "@\(large)",
        "--schema",
        schema
      )
      XCTAssertEqual(output.status, 0, output.error)
      XCTAssertTrue(output.text.contains(text))
    }
    let end = try await proxy.end()
    XCTAssertEqual(end.status, 1, end.error)
    XCTAssertTrue(end.error.contains("the cassette is full"), end.error)
    XCTAssertTrue(end.error.contains("recorded 1 call to"), end.error)
    XCTAssertTrue(end.error.contains("2097152 bytes"), end.error)
    XCTAssertTrue(try self.text(of: file).contains(text.prefix(1000)) == false, "base64")
  }

  // MARK: Streams that break

  func testAClientThatGoesAway() async throws {
    for version in Version.allCases {
      let server = try await LoopbackServer.start()
      server.onRaw("/test/Stream") { _, responder in
        try await responder.sendHead(headers: ["content-type": "application/connect+proto"])
        try await responder.sendBody([0, 0, 0, 0, 0])
        await responder.waitUntilClosed()
      }
      let file = try self.file()
      let proxy = try await ListeningProgram.start("record", file, "--to", server.url, "--count", "1")
      try await withPlainClient(version, host: proxy.url) { client in
        let stream = client.serverStream(streamMethod("/test/Stream"), CountRequest())
        for await result in stream.results {
          if case .message = result { break }
        }
        let request = try await server.endedRequest(to: "/test/Stream")
        XCTAssertEqual(request.outcome, EmbeddedServer.givenUp(version), "\(version)")
      }
      let end = try await proxy.end()
      XCTAssertEqual(end.status, 0, end.error)
      XCTAssertTrue(try self.text(of: file).contains("\"cancel\""), end.error)
      await server.stop()
    }
  }

  func testAServiceThatResets() async throws {
    for version in Version.allCases {
      let server = try await LoopbackServer.start()
      server.onRaw("/test/Stream") { _, responder in
        try await responder.sendHead(headers: ["content-type": "application/connect+proto"])
        try await responder.sendBody([0, 0, 0, 0, 0])
        // ENHANCE_YOUR_CALM.
        await responder.reset(code: 0xb)
      }
      let file = try self.file()
      let proxy = try await ListeningProgram.start("record", file, "--to", server.url, "--count", "1")
      try await self.checkReset(proxy.url, version)
      let end = try await proxy.end()
      XCTAssertEqual(end.status, 0, end.error)
      await server.stop()
      let replay = try await ListeningProgram.start("replay", file, "--count", "1")
      try await self.checkReset(replay.url, version)
      let replayed = try await replay.end()
      XCTAssertEqual(replayed.status, 0, replayed.error)
    }
  }

  /// A message comes, and then the stream breaks.
  private func checkReset(_ url: String, _ version: Version) async throws {
    try await withPlainClient(version, host: url) { client in
      var messages = 0
      var error: ConnectError?
      for await result in client.serverStream(streamMethod("/test/Stream"), CountRequest()).results {
        switch result {
        case .headers: break
        case .message: messages += 1
        case .complete(_, let end, _): error = end
        }
      }
      XCTAssertEqual(messages, 1, "\(version)")
      XCTAssertEqual(error?.code, version == .http2 ? .resourceExhausted : .unavailable, "\(version)")
    }
  }

  // MARK: Demand

  /// A client that does not read, and a service that does not read, hold back the other side, once the system's buffers are full.
  func testBothSidesAreHeldBack() async throws {
    let limit = 64 << 20
    for version in Version.allCases {
      let server = try await LoopbackServer.start()
      server.onRaw("/test/Stream") { _, responder in
        try await responder.sendHead(headers: ["content-type": "application/connect+proto"])
        let message = [0, 0, 1, 0, 0] + [UInt8](repeating: 0, count: 1 << 16)
        while true { try await responder.sendBody(message) }
      }
      server.onRaw("/test/Sink") { _, responder in await responder.waitUntilClosed() }
      let file = try self.file()
      let proxy = try await ListeningProgram.start("record", file, "--to", server.url)
      try await withPlainClient(version, host: proxy.url) { client in
        let stream = client.serverStream(streamMethod("/test/Stream"), CountRequest())
        let sink = client.clientStream(
          MethodSpec<EchoRequest, EchoResponse>(path: "/test/Sink", streamType: .clientStream)
        )
        let sent = Counter()
        let sender = Task {
          let message = EchoRequest.with { $0.payload.data = Data(count: 1 << 16) }
          while sent.value < limit {
            try await sink.send(message)
            sent.increment(by: 1 << 16)
          }
        }
        _ = try await server.request(to: "/test/Stream")
        _ = try await server.request(to: "/test/Sink")
        var last = (sent: 0, written: 0)
        var standsFor = 0
        while standsFor < 20, max(last.sent, last.written) < limit {
          let response = await client.unary(
            unaryMethod("/\(Self.service)/Echo"),
            .with { $0.payload.text = "meanwhile" }
          )
          XCTAssertNil(response.error)
          let written = server.requests.first { $0.path == "/test/Stream" }?.bytesWritten ?? .max
          let now = (sent: sent.value, written: written)
          standsFor = now == last ? standsFor + 1 : 0
          last = now
        }
        XCTAssertLessThan(last.sent, limit, "\(version)")
        XCTAssertLessThan(last.written, limit, "\(version)")
        stream.cancel()
        sink.cancel()
        sender.cancel()
        _ = await sender.result
      }
      let end = try await proxy.stop()
      XCTAssertEqual(end.status, 0, end.error)
      await server.stop()
    }
  }
}
