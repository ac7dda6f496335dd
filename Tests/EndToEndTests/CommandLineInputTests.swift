internal import Foundation
internal import Glibc
internal import LoopbackServer
internal import NIOCore
internal import TestSupport
internal import XCTest

/// What `connectrpc` is given and cannot use, and what it inherits from the process that starts it.
final class CommandLineInputTests: XCTestCase {
  private static let service = "connect.test.v1.TestService"

  /// Each is one line that says what is wrong, and no finding about a server.
  func testOptionsOfDoctor() async throws {
    let garbage = try self.temporaryFile("no certificate")
    let own = try await TestCertificate.make("own")
    let other = try await TestCertificate.make("other")
    let (cert, key) = (try self.temporaryFile(own.pem), try self.temporaryFile(own.keyPEM))
    let otherKey = try self.temporaryFile(other.keyPEM)
    let url = "http://127.0.0.1:1"
    for (arguments, part) in [
      ([url, "-H", "x"], "NAME:VALUE"),
      ([url, "-H", "a b: 1"], "a b"),
      ([url, "-H", "a: \u{1b}[2J"], "control character"),
      ([url, "-H", "x-bin: ***"], "x-bin"),
      ([url, "--authority", "https://a.example"], "--authority: the call's authority 'https://a.example'"),
      ([url, "--cert", cert], "--cert needs --key"),
      ([url, "--key", key], "--key needs --cert"),
      ([url, "--http", "3"], "HTTP/3 needs https://"),
      ([url, "--cacert", "/nonexistent"], "/nonexistent"),
      ([url, "--cacert", garbage], garbage),
      ([url, "--cert", garbage, "--key", key], garbage),
      ([url, "--cert", cert, "--key", garbage], garbage),
      ([url, "--cert", cert, "--key", otherKey], otherKey),
      ([url, "--proxy", "nonsense://a b"], "--proxy nonsense://a b"),
      ([url, "--resolve", "a.invalid"], "NAME=ADDRESS"),
      ([url, "--resolve", "a.invalid=,"], "NAME=ADDRESS"),
      ([url, "--resolve", "a.invalid=nowhere"], "nowhere is no address"),
    ] {
      let output = try await self.connectrpc(["doctor"] + arguments)
      XCTAssertEqual(output.status, 64, "\(arguments): \(output.text)\(output.error)")
      XCTAssertEqual(output.text, "", "\(arguments)")
      XCTAssertTrue(output.error.contains(part), "\(arguments): \(output.error)")
      XCTAssertEqual(output.error.split(separator: "\n").count, 1, "\(arguments): \(output.error)")
    }
    // The library refuses it when a call is made.
    let server = try await LoopbackServer.start()
    let output = try await self.connectrpc("doctor", server.url, "-H", "content-length: 1")
    XCTAssertEqual(output.status, 64, output.text + output.error)
    XCTAssertTrue(output.error.contains("content-length"), output.error)
    await server.stop()
  }

  func testFilesOfCalls() async throws {
    let garbage = try self.temporaryFile("\u{7f}no such thing")
    let own = try await TestCertificate.make("own")
    let other = try await TestCertificate.make("other")
    let (cert, key) = (try self.temporaryFile(own.pem), try self.temporaryFile(other.keyPEM))
    let schema = try await self.descriptorSet()
    let url = "https://127.0.0.1:1/\(Self.service)/Echo"
    let server = try await LoopbackServer.start(.tls(.make()))
    let secure = "\(server.url)/\(Self.service)/Echo"
    for (arguments, part) in [
      ([url, "--schema", garbage], garbage),
      ([secure, "--schema", schema, "--cacert", garbage], garbage),
      ([secure, "--schema", schema, "--cert", garbage, "--key", key], garbage),
      ([secure, "--schema", schema, "--cert", cert, "--key", garbage], garbage),
      ([secure, "--schema", schema, "--cert", cert, "--key", key], "private key"),
      ([url, "--resolve", "127.0.0.1=,"], "NAME=ADDRESS"),
    ] {
      let output = try await self.connectrpc(["call"] + arguments)
      XCTAssertEqual(output.status, 64, "\(arguments): \(output.error)")
      XCTAssertEqual(output.text, "", "\(arguments)")
      XCTAssertTrue(output.error.contains(part), "\(arguments): \(output.error)")
      XCTAssertEqual(output.error.split(separator: "\n").count, 1, "\(arguments): \(output.error)")
    }
    await server.stop()
  }

  /// Nothing is started that could not make a call.
  func testFilesOfLoadsAndProxies() async throws {
    let schema = try await self.descriptorSet()
    let cassette = try self.temporaryFile("")
    let url = "https://127.0.0.1:1"
    for arguments in [
      ["load", "\(url)/\(Self.service)/Echo", "--schema", schema, "--count", "1"],
      ["record", cassette, "--to", url],
    ] {
      let output = try await self.connectrpc(arguments + ["--cacert", "/nonexistent"])
      XCTAssertEqual(output.status, 64, "\(arguments): \(output.error)")
      XCTAssertEqual(output.text, "", "\(arguments)")
      XCTAssertTrue(output.error.contains("/nonexistent"), "\(arguments): \(output.error)")
      XCTAssertEqual(output.error.split(separator: "\n").count, 1, "\(arguments): \(output.error)")
    }
  }

  // MARK: What is inherited

  /// As with nohup.
  func testIgnoredSignalsStayIgnored() async throws {
    let file = try self.temporaryFile("")
    let process = try ChildProcess(
      URL(filePath: "/bin/sh"),
      arguments: [
        "-c", #"trap "" HUP INT; exec "$0" record "$1" --to http://127.0.0.1:1"#, CommandLineProgram.path,
        file,
      ]
    )
    try await eventually("it listens: \(process.errorOutput)") {
      process.errorOutput.contains("listening on")
    }
    for signal in [SIGHUP, SIGINT] {
      process.signal(signal)
      try await Task.sleep(for: .milliseconds(300))
      XCTAssertTrue(process.isRunning, "\(signal)")
    }
    process.signal(SIGTERM)
    let status = try await process.exitStatus(within: patience)
    XCTAssertEqual(status, 0, process.errorOutput)
    XCTAssertTrue(process.errorOutput.contains("recorded 0 calls"), process.errorOutput)
  }

  func testNonBlockingInput() async throws {
    let script = "import os, sys; os.set_blocking(0, False); os.execv(sys.argv[1], sys.argv[1:])"
    let url = "\(try await self.reflecting())/\(Self.service)/Converse"
    let process = try ChildProcess(
      URL(filePath: "/usr/bin/env"),
      arguments: ["python3", "-c", script, CommandLineProgram.path, "call", url]
    )
    for text in ["a", "b"] {
      try await Task.sleep(for: .milliseconds(300))
      try await process.write(Data("{\"payload\": {\"text\": \"\(text)\"}}\n".utf8))
    }
    try process.closeInput()
    let text = String(decoding: try await process.readAll(), as: UTF8.self)
    let status = try await process.exitStatus(within: .seconds(60))
    XCTAssertEqual(status, 0, process.errorOutput)
    XCTAssertEqual(text.split(separator: "\n").count, 2, text)
  }

  // MARK: Proxies

  /// A request that is collected before it is handed on is bounded.
  func testLargeGETsAreRefused() async throws {
    let server = try await LoopbackServer.start()
    let file = try self.temporaryFile("")
    let proxy = try await ListeningProgram.start("record", file, "--to", server.url)
    let port = try XCTUnwrap(proxy.url.split(separator: ":").last.flatMap { Int($0) })
    for (size, part) in [(70_000, "HTTP/1.1 413"), (60_000, "HTTP/1.1 2")] {
      server.onRaw("/get") { request, responder in
        _ = try await request.body()
        try await responder.respond(status: 204)
      }
      let piece = "\(String(size, radix: 16))\r\n\(String(repeating: "x", count: size))\r\n0\r\n\r\n"
      let head = "GET /get HTTP/1.1\r\nhost: a\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"
      let answer = try await PlainConnection.exchange(port: port, ByteBuffer(string: head + piece)) {
        String(buffer: $0).contains("\r\n\r\n")
      }
      XCTAssertTrue(String(buffer: answer).hasPrefix(part), String(buffer: answer))
    }
    let end = try await proxy.stop()
    XCTAssertEqual(end.status, 0, end.error)
    await server.stop()
  }
}
