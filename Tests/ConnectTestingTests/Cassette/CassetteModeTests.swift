import Connect
import LoopbackServer
import NIOCore
import SwiftProtobuf
import Synchronization
import TestSupport
import XCTest

@testable import ConnectTesting

/// Where calls go, what is written, and what is said of calls that are missing.
final class CassetteModeTests: XCTestCase {
  private let setting = WireSetting(.connect)
  private let configuration = Cassette.Configuration(messages: TapedCalls.messages)

  /// A folder of its own for one test, in the place of that of the test's file.
  private func makeFolder() throws -> String {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("cassettes-\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    addTeardownBlock { try FileManager.default.removeItem(at: folder) }
    return folder.path
  }

  private func transport(
    _ mode: CassetteTransport.Mode?,
    in folder: String,
    over base: InMemoryTransport? = nil
  ) throws -> CassetteTransport {
    try CassetteTransport(
      forTest: "users",
      over: base,
      mode: mode,
      configuration: self.configuration,
      file: "\(folder)/Tests.swift"
    )
  }

  /// A server that counts its calls.
  private func server() -> (transport: InMemoryTransport, calls: Observation) {
    let (transport, calls) = (InMemoryTransport(), Observation())
    transport.onUnary(TestMethods.echo) { request, _ in
      calls.add()
      return .with { $0.payload = request.payload }
    }
    return (transport, calls)
  }

  private func echo(_ transport: CassetteTransport, _ text: String) async -> ResponseMessage<EchoResponse> {
    await self.setting.client(over: transport).unary(TestMethods.echo, .with { $0.payload.text = text })
  }

  func testRecordThenReplay() async throws {
    let folder = try self.makeFolder()
    let (server, calls) = self.server()
    let recording = try self.transport(.record, in: folder, over: server)
    for text in ["a", "b"] { _ = try await self.echo(recording, text).requireMessage() }
    try await recording.finish()
    let path = "\(folder)/Cassettes/users.json"
    let text = try String(contentsOfFile: path, encoding: .utf8)
    XCTAssertEqual(text, recording.cassette.text)

    let replay = try self.transport(nil, in: folder)
    XCTAssertEqual(replay.mode, .replay)
    for text in ["b", "a"] {
      try requireEqual(try await self.echo(replay, text).requireMessage().payload.text, text)
    }
    try await replay.finish()
    XCTAssertEqual(calls.count, 2)

    // What is recorded again is the same, and takes the place of what was there.
    let again = try self.transport(.record, in: folder, over: server)
    _ = try await self.echo(again, "b").requireMessage()
    try await again.finish()
    XCTAssertEqual(try Cassette(contentsOf: path, configuration: self.configuration).count, 1)
  }

  func testRecordMissing() async throws {
    let folder = try self.makeFolder()
    let (server, calls) = self.server()
    let first = try self.transport(.recordMissing, in: folder, over: server)
    _ = try await self.echo(first, "a").requireMessage()
    try await first.finish()
    XCTAssertEqual(calls.count, 1)

    let second = try self.transport(.recordMissing, in: folder, over: server)
    for text in ["a", "b"] {
      try requireEqual(try await self.echo(second, text).requireMessage().payload.text, text)
    }
    try await second.finish()
    XCTAssertEqual(calls.count, 2)

    let replay = try self.transport(.replay, in: folder)
    for text in ["a", "b"] { _ = try await self.echo(replay, text).requireMessage() }
    try await replay.finish()
  }

  /// Whether a stream is there shows with its messages; what was written until then goes to the server.
  func testRecordMissingStreams() async throws {
    for setting in WireSetting.inMemory {
      let configuration = self.configuration
      let cassette = try Cassette(configuration: configuration)
      let server = TapedCalls.server(setting)
      let recording = try CassetteTransport(cassette, over: server, mode: .record)
      _ = try await TapedCalls.converse(setting.client(over: recording), ["a", "b"])
      let copy = try Cassette(text: cassette.text, configuration: configuration)
      let missing = try CassetteTransport(copy, over: server, mode: .recordMissing)
      let client = setting.client(over: missing)
      let stream = client.clientStream(TestMethods.sum)
      for number in 1...5 { try await stream.send(.with { $0.number = Int64(number) }) }
      try requireEqual(try await stream.closeAndReceive().requireMessage().sum, 15, "\(setting)")
      _ = try await TapedCalls.converse(client, ["a", "b"])
      _ = try await TapedCalls.converse(client, ["x"])
      try await missing.finish()
      XCTAssertEqual(copy.count, 3, "\(setting)")
    }
  }

  func testPassThrough() async throws {
    let folder = try self.makeFolder()
    let (server, calls) = self.server()
    let transport = try self.transport(.passThrough, in: folder, over: server)
    _ = try await self.echo(transport, "a").requireMessage()
    try await transport.finish()
    XCTAssertEqual(calls.count, 1)
    XCTAssertEqual(transport.cassette.count, 0)
    XCTAssertFalse(FileManager.default.fileExists(atPath: "\(folder)/Cassettes"))
  }

  /// The transport that makes calls is not made where none are made.
  func testReplayMakesNoTransport() async throws {
    let folder = try self.makeFolder()
    let (server, _) = self.server()
    let recording = try self.transport(.record, in: folder, over: server)
    try await recording.finish()
    let made = Observation()
    func make() -> InMemoryTransport {
      made.add()
      return InMemoryTransport()
    }
    _ = try CassetteTransport(forTest: "users", over: make(), mode: .replay, file: "\(folder)/Tests.swift")
    XCTAssertEqual(made.count, 0)
  }

  func testModesOfTheEnvironment() throws {
    for mode in CassetteTransport.Mode.allCases {
      XCTAssertEqual(try CassetteTransport.Mode.named(mode.rawValue), mode)
    }
    XCTAssertEqual(try CassetteTransport.Mode.named(""), .replay)
    XCTAssertThrowsError(try CassetteTransport.Mode.named("tape")) { error in
      XCTAssertEqual(
        "\(error)",
        #"CONNECT_CASSETTE: "tape" is none of replay, record, record-missing, pass-through"#
      )
    }
    for mode in CassetteTransport.Mode.allCases where mode != .replay {
      XCTAssertThrowsError(try CassetteTransport(try Cassette(), mode: mode))
    }
  }

  func testMissingFileSaysHowToRecord() throws {
    let folder = try self.makeFolder()
    XCTAssertThrowsError(try self.transport(.replay, in: folder)) { error in
      XCTAssertEqual(
        "\(error)",
        "\(folder)/Cassettes/users.json: there is no such cassette; "
          + "CONNECT_CASSETTE=record in the environment of the test records it"
      )
    }
  }

  /// A call that is not there says what was asked and what comes nearest; the end says both kinds again.
  func testCallsThatAreNotThere() async throws {
    let (server, _) = self.server()
    let cassette = try Cassette(configuration: self.configuration)
    let recording = try CassetteTransport(cassette, over: server, mode: .record)
    for text in ["first", "second"] { _ = await self.echo(recording, text) }

    let replay = try CassetteTransport(cassette)
    let error = try await self.echo(replay, "frist").requireError(.failedPrecondition)
    try requireEqual(
      error.message,
      """
      the cassette has no answer to /connect.test.v1.TestService/Echo (connect+proto)
      asked:
      {"payload": {"text": "frist"}}
      the nearest that was recorded (- recorded, + asked):
      - {"payload": {"text": "first"}}
      + {"payload": {"text": "frist"}}
      recorded and not asked yet:
      - /connect.test.v1.TestService/Echo (connect+proto): {"payload":{"text":"first"}}
      - /connect.test.v1.TestService/Echo (connect+proto): {"payload":{"text":"second"}}
      CONNECT_CASSETTE=record-missing in the environment of the test records it
      """
    )
    _ = try await self.echo(replay, "first").requireMessage()
    let used = try await self.echo(replay, "first").requireError(.failedPrecondition)
    XCTAssertTrue(used.message?.contains("it has this call 1 times, and all were asked before") == true)
    let grpc = WireSetting(.grpc).client(over: replay)
    let other = try await grpc.unary(TestMethods.echo, EchoRequest()).requireError(.failedPrecondition)
    XCTAssertTrue(other.message?.contains("over connect+proto alone") == true, "\(other)")
    let none = try await grpc.unary(TestMethods.lookup, .init()).requireError(.failedPrecondition)
    XCTAssertTrue(none.message?.contains("it has no call of this method") == true, "\(none)")

    do {
      try await replay.finish()
      XCTFail("the calls are not reported")
    } catch let failure as ExpectationFailure {
      let text = failure.description
      XCTAssertTrue(text.contains("the cassette: 4 calls were asked and are not there"), text)
      XCTAssertTrue(text.contains("the cassette: 1 calls were recorded and never asked"), text)
      let unused = #"- /connect.test.v1.TestService/Echo (connect+proto): {"payload":{"text":"second"}}"#
      XCTAssertTrue(text.contains(unused), text)
    }
  }

  /// A function decides in place of equality.
  func testMatchingByAFunction() async throws {
    let (server, _) = self.server()
    var configuration = self.configuration
    let seen = Mutex<[Cassette.Request]>([])
    configuration.matching = { asked, recorded in
      seen.withLock { $0.append(recorded) }
      return asked.headers["x-user"] == recorded.headers["x-user"]
    }
    let cassette = try Cassette(configuration: configuration)
    let recording = self.setting.client(over: try CassetteTransport(cassette, over: server, mode: .record))
    func call(_ client: ProtocolClient, _ user: String, _ text: String) async throws -> String {
      let response = await client.unary(
        TestMethods.echo,
        .with { $0.payload.text = text },
        options: CallOptions(headers: ["x-user": [user]])
      )
      return try response.requireMessage().payload.text
    }
    for user in ["ada", "bob"] { _ = try await call(recording, user, "I am \(user)") }

    let replay = self.setting.client(over: try CassetteTransport(cassette))
    try requireEqual(try await call(replay, "bob", "anything"), "I am bob")
    try requireEqual(try await call(replay, "ada", "else"), "I am ada")
    let request = try XCTUnwrap(seen.withLock { $0.first })
    XCTAssertEqual(request.path, TestMethods.echo.path)
    XCTAssertEqual(request.messages.first, #"{"payload":{"text":"I am ada"}}"#)
  }

  // MARK: Limits

  func testLimits() async throws {
    let (server, _) = self.server()
    for (configuration, problem) in [
      (
        Cassette.Configuration(maximumBodySize: 100),
        "has more than 100 bytes, the cassette's maximumBodySize"
      ),
      (Cassette.Configuration(maximumSize: 100), "would have more than 100 bytes, its maximumSize"),
    ] {
      let cassette = try Cassette(configuration: configuration)
      let recording = try CassetteTransport(cassette, over: server, mode: .record)
      _ = try await self.echo(recording, String(repeating: "a", count: 1000)).requireMessage()
      do {
        try await recording.finish()
        XCTFail("not reported: \(problem)")
      } catch {
        XCTAssertTrue("\(error)".contains(problem), "\(error)")
      }
    }
    let folder = try self.makeFolder()
    let path = "\(folder)/large.json"
    try String(repeating: " ", count: 1000).write(toFile: path, atomically: true, encoding: .utf8)
    XCTAssertThrowsError(try Cassette(contentsOf: path, configuration: .init(maximumSize: 999))) { error in
      XCTAssertTrue("\(error)".contains("over the configuration's maximumSize of 999"), "\(error)")
    }
  }

  /// What calls under way have sent and received counts, too: the second one does not fit beside the first.
  func testCallsUnderWayCountForTheSize() async throws {
    let server = InMemoryTransport()
    server.onBidirectionalStream(TestMethods.converse) { _, _, context in await context.waitUntilClosed() }
    let cassette = try Cassette(configuration: .init(maximumSize: 6 << 10))
    let recording = try CassetteTransport(cassette, over: server, mode: .record)
    let client = self.setting.client(over: recording)
    let streams = (0..<2).map { _ in client.bidirectionalStream(TestMethods.converse) }
    for stream in streams {
      try await stream.send(.with { $0.payload.text = String(repeating: "a", count: 3000) })
    }
    XCTAssertTrue(cassette.isFull)
    XCTAssertEqual(cassette.openCallCount, 2)
    for stream in streams { stream.cancel() }
    let isOver = await cassette.waitForRecordings(within: .seconds(10))
    XCTAssertTrue(isOver)
    XCTAssertEqual(cassette.count, 1)
    XCTAssertEqual(cassette.problems.count, 1)
  }

  /// Programs that get the types of messages from a server keep them in the file.
  func testASchemaStaysInTheFile() throws {
    let cassette = try Cassette()
    XCTAssertNil(CassetteText.schema(in: cassette.text))
    cassette.schema = ByteBuffer(bytes: [0, 255, 1])
    XCTAssertEqual(CassetteText.schema(in: cassette.text), ByteBuffer(bytes: [0, 255, 1]))
    let copy = try Cassette(text: cassette.text)
    XCTAssertEqual(copy.schema, cassette.schema)
    XCTAssertEqual(copy.text, cassette.text)
  }

  func testCallsThatHaveNotEndedAreAnError() async throws {
    let server = InMemoryTransport()
    server.onBidirectionalStream(TestMethods.converse) { _, _, context in await context.waitUntilClosed() }
    let cassette = try Cassette()
    let recording = try CassetteTransport(cassette, over: server, mode: .record)
    let stream = self.setting.client(over: recording).bidirectionalStream(TestMethods.converse)
    try await stream.send(.with { $0.payload.text = "a" })
    let isOver = await cassette.waitForRecordings(within: .milliseconds(1))
    XCTAssertFalse(isOver)
    stream.cancel()
    try await recording.finish()
    XCTAssertEqual(cassette.count, 1)
  }
}
