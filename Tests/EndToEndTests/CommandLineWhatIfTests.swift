internal import ConnectChannels
internal import Foundation
internal import TestSupport
internal import XCTest

/// `connectrpc whatif`: traces in, tables out.
final class CommandLineWhatIfTests: XCTestCase {
  private static let policy = #"""
    "retryPolicy": { "maxAttempts": 3, "initialBackoff": "0.01s", "maxBackoff": "0.1s", "backoffMultiplier": 2,
      "retryableStatusCodes": ["UNAVAILABLE"] }
    """#
  private static let config = #"{ "methodConfig": [{ "name": [{}], "timeout": "1s", \#(policy) }] }"#

  /// An access log of three servers, whose calls fail now and then.
  private static func log(seconds: Double = 30, rate: Double = 50) -> String {
    var random = SeededRandom(seed: 1)
    var (time, lines) = (1_795_766_400.0, [String]())
    let end = time + seconds
    while time < end {
      time += 1 / rate
      let code = random.fraction() < 0.02 ? "unavailable" : "ok"
      let server = Int(random.fraction() * 3) + 1
      let milliseconds = 2 + random.fraction() * 8
      lines.append(
        #"{"time":\#(time),"method":"/shop.v1.Orders/Get","duration_ms":\#(milliseconds),"code":"\#(code)","server":"orders-\#(server)"}"#
      )
    }
    return lines.joined(separator: "\n") + "\n"
  }

  private func whatif(_ arguments: String..., input: String = "") async throws -> ProgramOutput {
    try await self.connectrpc(["whatif", "--seeds", "1", "--for", "10s"] + arguments, input: input)
  }

  func testANewPolicy() async throws {
    let log = try self.temporaryFile(Self.log())
    let config = try self.temporaryFile(Self.config)
    let output = try await self.whatif(log, "--config", config)
    XCTAssertEqual(output.status, 0, output.error)
    XCTAssertEqual(output.error, "")
    let table = output.lines.map { $0.split(whereSeparator: { $0 == " " }).map(String.init) }
    XCTAssertEqual(table.first, ["now", "new"])
    for (index, name) in ["success", "p50", "attempts", "load,"].enumerated() {
      XCTAssertEqual(table[index + 1].first, name, output.text)
    }
    XCTAssertEqual(table[1].suffix(2), ["100.00", "%"], output.text)
    for part in ["fit: recorded / predicted", "not modelled", "assumed", "success over time", "seeds 1 to 1"]
    {
      XCTAssertTrue(output.text.contains(part), part)
    }
    // From standard input it is the same, and so it is a second time.
    let again = try await self.whatif("-", "--config", config, input: Self.log())
    XCTAssertEqual(again.text, output.text)
  }

  func testJSONAndFaults() async throws {
    let log = try self.temporaryFile(Self.log() + "no line\n")
    let output = try await self.whatif(
      log,
      "--now",
      try self.temporaryFile(Self.config),
      "--freeze",
      "orders-2",
      "--slow",
      "3=5x",
      "--load",
      "2x",
      "--json"
    )
    XCTAssertEqual(output.status, 0, output.error)
    XCTAssertTrue(output.error.contains("note: of the traces, 1 could not be used"), output.error)
    XCTAssertTrue(output.error.contains(": no JSON: a value is missing, column 1"), output.error)
    let object = try JSONSerialization.jsonObject(with: Data(output.text.utf8)) as? [String: Any]
    XCTAssertEqual(object?["mistakes"] as? Int, 1)
    XCTAssertEqual(object?["servers"] as? [String], ["orders-1", "orders-2", "orders-3"])
    let trials = try XCTUnwrap(object?["trials"] as? [[String: Any]])
    XCTAssertEqual(trials.map { $0["name"] as? String }, ["now", "changed"])
    let runs = trials.compactMap { ($0["runs"] as? [[String: Any]])?.first }
    let success = runs.compactMap { $0["successRate"] as? Double }
    XCTAssertGreaterThan(success.first ?? 0, 0.99)
    // Calls at the frozen server time out after a second, until its connection is found to be lost.
    XCTAssertLessThan(success.last ?? 1, 0.98)
    XCTAssertGreaterThan(success.last ?? 0, 0.9)
    let calls = runs.compactMap { $0["calls"] as? Int }
    XCTAssertEqual(Double(calls.last ?? 0) / Double(calls.first ?? 1), 2, accuracy: 0.3)
  }

  func testWhatCannotBeUsed() async throws {
    let log = try self.temporaryFile(Self.log(seconds: 2))
    let wrong = try self.temporaryFile(#"{ "methodConfig": [{ "name": [{}], "timeout": 1 }] }"#)
    for (arguments, problem) in [
      ([], "give a trace"), ([log, "--storm", wrong], "either traces or --storm"),
      (["/does/not/exist"], "cannot be opened"),
      ([wrong], "there is no call in it"), ([log, "--config", wrong], "methodConfig[0].timeout"),
      ([log, "--config", "/no"], "cannot read '/no'"),
      ([log, "--freeze", "9"], "there is no server '9'; there are 1 orders-1"),
      ([log, "--slow", "1"], "--slow has a server and a factor"),
      ([log, "--load", "much"], "--load has a factor"),
      ([log, "--lose-zone", "z"], "no server is in zone \"z\""),
      ([log, "--seeds", "0"], "--seeds is from 1"),
      (["--storm", wrong], "\"methodConfig\" is not known"),
    ] as [([String], String)] {
      let output = try await self.connectrpc(["whatif"] + arguments)
      XCTAssertEqual(output.status, 64, output.error)
      XCTAssertTrue(output.error.contains(problem), "\(arguments): \(output.error)")
      XCTAssertEqual(output.text, "")
    }
  }

  /// With a schema, calls of methods that it does not have are mistakes.
  func testUnknownMethods() async throws {
    let schema = try await self.descriptorSet()
    let output = try await self.whatif(try self.temporaryFile(Self.log(seconds: 2)), "--schema", schema)
    XCTAssertEqual(output.status, 64)
    XCTAssertTrue(output.error.contains(":1: the method /shop.v1.Orders/Get is not known"), output.error)
  }

  /// Names of the trace do not reach the terminal as they are.
  func testControlCharacters() async throws {
    // No method has them, and servers may.
    for (name, status) in [("Orders", 64), ("orders-", 0)] {
      let log = Self.log(seconds: 2).replacing(name, with: "\\u001b[31m\(name)")
      let output = try await self.whatif(try self.temporaryFile(log))
      XCTAssertEqual(Int(output.status), status, output.error)
      XCTAssertFalse("\(output.text)\(output.error)".contains("\u{1b}"), output.text)
    }
  }

  /// A cassette says how long calls take, and not when they came.
  func testACassetteNeedsARate() async throws {
    let cassette = try self.temporaryFile(
      #"""
      {"cassette": 1, "exchanges": [{"call": "/a.B/C", "http": "POST", "over": "HTTP/2", "wire": "connect+json", "headers": {}, "parts": [
        {"ms": 0, "send": {"json": {}}}, {"ms": 0, "finish": {}}, {"ms": 7, "head": {"status": 200, "headers": {}}},
        {"ms": 8, "receive": {"json": {}}}, {"ms": 8, "end": {}}]}]}
      """#
    )
    let output = try await self.whatif(cassette)
    XCTAssertEqual(output.status, 64)
    XCTAssertTrue(output.error.contains("the trace has no times: give --rate"), output.error)
    let rated = try await self.whatif(cassette, "--rate", "10", "--servers", "2")
    XCTAssertEqual(rated.status, 0, rated.error)
    XCTAssertTrue(rated.text.contains("8 / 8 ms"), rated.text)
  }

  func testAStorm() async throws {
    func call(_ service: String) -> String {
      #"{ "service": "\#(service)", "method": "/t.\#(service)/Do", "config": \#(Self.config.replacing("\"timeout\": \"1s\",", with: "")) }"#
    }
    let map = try self.temporaryFile(
      #"""
      { "services": [ { "name": "client", "calls": [\#(call("front"))] }, { "name": "front", "calls": [\#(call("orders"))] },
        { "name": "orders", "calls": [\#(call("stock"))] }, { "name": "stock" } ] }
      """#
    )
    let output = try await self.connectrpc("whatif", "--storm", map)
    XCTAssertEqual(output.status, 1, output.error)
    XCTAssertTrue(output.text.contains("client -> front -> orders -> stock"), output.text)
    XCTAssertTrue(output.text.contains("27 times the load"), output.text)
    XCTAssertTrue(output.text.contains("\"retryThrottling\""), output.text)
    let json = try await self.connectrpc("whatif", "--storm", map, "--json")
    let object = try JSONSerialization.jsonObject(with: Data(json.text.utf8)) as? [String: Any]
    XCTAssertEqual(object?["simulated"] as? Double ?? 0, 27, accuracy: 0.5)
    XCTAssertLessThanOrEqual(object?["simulatedWithProposal"] as? Double ?? 99, 1.2)
  }
}

/// The guide "Is the new retry policy safe?" has what its commands print. It is written again by a run with
/// `CONNECT_SESSIONS=record`.
final class WhatIfGuideTests: XCTestCase {
  private static let guide = URL(filePath: #filePath).deletingLastPathComponent()
    .appending(path: "../../Sources/ConnectSimulation/ConnectSimulation.docc/TryingAPolicy.md").standardized
  private static let isRecording = ProcessInfo.processInfo.environment["CONNECT_SESSIONS"] == "record"

  /// Four servers that work on four requests at a time; the load rises and falls.
  private static var accessLog: String {
    var random = SeededRandom(seed: 3)
    let rates = [60.0, 120, 180, 240, 200, 120]
    var places = Array(repeating: Array(repeating: 0.0, count: 4), count: 4)
    var (time, number) = (0.0, 0)
    var lines: [(end: Double, text: String)] = []
    while time < 120 {
      time -= log(1 - random.fraction()) / 240
      guard random.fraction() * 240 < rates[Int(time / 10) % rates.count] else { continue }
      let server = number % 4
      number += 1
      let normal = sqrt(-2 * log(1 - random.fraction())) * cos(2 * .pi * random.fraction())
      let work = 0.035 * exp(0.845 * normal)
      let place = places[server].indices.min { places[server][$0] < places[server][$1] } ?? 0
      let end = max(time, places[server][place]) + work
      places[server][place] = end
      let code = random.fraction() < 0.01 ? "unavailable" : "ok"
      let milliseconds = String(format: "%.3f", (end - time) * 1e3)
      let text = #"{"time":\#(String(format: "%.3f", 1_795_766_400 + end)),"method":"/shop.v1.Orders/Get","#
      lines.append(
        (end, text + #""duration_ms":\#(milliseconds),"code":"\#(code)","server":"orders-\#(server + 1)"}"#)
      )
    }
    return lines.sorted { $0.end < $1.end }.map(\.text).joined(separator: "\n") + "\n"
  }

  func testTheGuide() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    self.addTeardownBlock { try? FileManager.default.removeItem(at: folder) }
    let guide = try String(contentsOf: Self.guide, encoding: .utf8)
    let files = guide.components(separatedBy: "```json\n").dropFirst().compactMap {
      $0.components(separatedBy: "\n```").first
    }
    XCTAssertEqual(files.count, 4)
    for (name, text) in zip(["now.json", "new.json", "retry.json", "services.json"], files) {
      try text.write(to: folder.appending(path: name), atomically: true, encoding: .utf8)
    }
    try Self.accessLog.write(to: folder.appending(path: "access.ndjson"), atomically: true, encoding: .utf8)
    let programs = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().path()
    var parts = guide.components(separatedBy: "```text\n$ ")
    XCTAssertEqual(parts.count, 6)
    for index in parts.indices.dropFirst() {
      let end = try XCTUnwrap(parts[index].range(of: "```"))
      let command = String(parts[index].prefix { $0 != "\n" })
      let process = try ChildProcess(
        URL(filePath: "/bin/bash"),
        arguments: ["-c", "cd '\(folder.path())' && \(command)"],
        environment: ["NO_COLOR": "1", "PATH": "\(programs):/usr/bin:/bin"]
      )
      try process.closeInput()
      let text = String(decoding: try await process.readAll(), as: UTF8.self)
      _ = try await process.exitStatus(within: .seconds(120))
      XCTAssertEqual(process.errorOutput, "")
      parts[index] = "\(command)\n\(text)" + parts[index][end.lowerBound...]
    }
    let played = parts.joined(separator: "```text\n$ ")
    if Self.isRecording { try played.write(to: Self.guide, atomically: true, encoding: .utf8) }
    let (expected, found) = (guide.components(separatedBy: "\n"), played.components(separatedBy: "\n"))
    XCTAssertEqual(expected.count, found.count)
    for (expected, found) in zip(expected, found) { XCTAssertEqual(found, expected) }
  }
}
