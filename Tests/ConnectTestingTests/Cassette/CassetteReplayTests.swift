import Connect
import ConnectTesting
import LoopbackServer
import NIOCore
import SwiftProtobuf
import Synchronization
import TestSupport
import XCTest

/// What is recorded is replayed with the same results.
final class CassetteReplayTests: XCTestCase {
  private static let configurations = [
    Cassette.Configuration(messages: TapedCalls.messages), Cassette.Configuration(),
  ]

  /// Each kind of call, over each protocol, codec and compression, from the file's text, with types and without.
  func testEachKindOfCall() async throws {
    for setting in WireSetting.inMemory {
      for configuration in Self.configurations {
        let cassette = try Cassette(configuration: configuration)
        let server = TapedCalls.server(setting)
        let recording = try CassetteTransport(cassette, over: server, mode: .record)
        let expected = try await TapedCalls.make(setting.client(over: recording))
        try await recording.finish()

        let copy = try Cassette(text: cassette.text, configuration: configuration)
        let replay = try CassetteTransport(copy)
        let actual = try await TapedCalls.make(setting.client(over: replay))

        try requireEqual(actual, expected, "\(setting)")
        try await replay.finish()
        // It is stable: what was read is written as it was.
        try requireEqual(copy.text, cassette.text, "\(setting)")
      }
    }
  }

  /// The same cassette answers what was recorded into it, and messages are readable.
  func testMessagesAreJSON() async throws {
    for codec in [ProtoCodec() as any Codec, JSONCodec()] {
      let setting = WireSetting(.grpc, codec: codec, isCompressed: true)
      let cassette = try Cassette(configuration: .init(messages: TapedCalls.messages))
      let recording = try CassetteTransport(cassette, over: TapedCalls.server(setting), mode: .record)
      let request = EchoRequest.with { $0.payload.text = "hello" }
      let expected = await setting.client(over: recording).unary(TestMethods.echo, request)
      try await recording.finish()

      XCTAssertTrue(cassette.text.contains(#"{"json": {"payload": {"text": "hello"}}}"#), cassette.text)
      XCTAssertFalse(cassette.text.contains("base64"), cassette.text)
      let replay = try CassetteTransport(cassette)
      let actual = await setting.client(over: replay).unary(TestMethods.echo, request)
      try requireEqual(TapedCalls.summary(actual), TapedCalls.summary(expected))
      try await replay.finish()
    }
  }

  func testGET() async throws {
    for codec in [ProtoCodec() as any Codec, JSONCodec()] {
      for isCompressed in [false, true] {
        let setting = WireSetting(.connect, codec: codec, isCompressed: isCompressed)
        let cassette = try Cassette(configuration: .init(messages: TapedCalls.messages))
        let recording = try CassetteTransport(cassette, over: TapedCalls.server(setting), mode: .record)
        let request = Connect_Test_V1_LookupRequest.with { $0.key = "a/b?c" }
        let client = setting.client(over: recording) { $0.unaryGET = .alwaysEnabled }
        let expected = await client.unary(TestMethods.lookup, request)
        XCTAssertEqual(try expected.requireMessage().value, "a/b?c=1")

        XCTAssertTrue(cassette.text.contains(#""http": "GET""#))
        XCTAssertTrue(cassette.text.contains(#"{"json": {"key": "a/b?c"}}"#), cassette.text)
        let copy = try Cassette(text: cassette.text, configuration: .init(messages: TapedCalls.messages))
        let replay = setting.client(over: try CassetteTransport(copy)) { $0.unaryGET = .alwaysEnabled }
        let actual = await replay.unary(TestMethods.lookup, request)
        try requireEqual(TapedCalls.summary(actual), TapedCalls.summary(expected))
        let other = await replay.unary(TestMethods.lookup, .with { $0.key = "other" })
        try other.requireError(.failedPrecondition)
      }
    }
  }

  /// Connections that are refused, streams that are refused and made again, resets, bodies that break off, and responses of
  /// something that is no RPC server.
  func testFailures() async throws {
    let faults: [[InMemoryTransport.Fault]] = [
      [.refuseConnection], [.refuseHTTP2], [.reset(afterBytes: 0)], [.reset(afterBytes: 3)],
      [.reset(afterBytes: 40, code: 8)], [.dropTrailers], [.splitEvery(1)], [.refuseStream],
    ]
    for setting in WireSetting.inMemory {
      for fault in faults {
        let server = TapedCalls.server(setting)
        func makeCalls(_ client: ProtocolClient, _ inject: () -> Void) async throws -> [String] {
          inject()
          let unary = await client.unary(TestMethods.echo, .with { $0.payload = TapedCalls.payload })
          inject()
          let stream = client.serverStream(TestMethods.count, .with { $0.from = 1 })
          return [TapedCalls.summary(unary), TapedCalls.summary(try await stream.results.collected())]
        }
        let configuration = Cassette.Configuration(messages: TapedCalls.messages)
        let cassette = try Cassette(configuration: configuration)
        let recording = try CassetteTransport(cassette, over: server, mode: .record)
        let expected = try await makeCalls(setting.client(over: recording)) {
          for fault in fault { server.inject(fault, calls: 1) }
        }
        try await recording.finish()

        let replay = try CassetteTransport(try Cassette(text: cassette.text, configuration: configuration))
        let actual = try await makeCalls(setting.client(over: replay)) {}
        try requireEqual(actual, expected, "\(setting), \(fault)")
        try await replay.finish()
      }
    }
  }

  /// A client that looks for a protocol that gets through finds the same one again.
  func testProtocolSearch() async throws {
    let setting = WireSetting(.automatic([.grpc, .connect]))
    let server = TapedCalls.server(setting)
    server.inject(.refuseHTTP2)
    let cassette = try Cassette()
    let recording = try CassetteTransport(cassette, over: server, mode: .record)
    let request = EchoRequest.with { $0.payload.text = "a" }
    let expected = await setting.client(over: recording).unary(TestMethods.echo, request)
    try requireEqual(try expected.requireMessage().payload.text, "a")
    XCTAssertEqual(cassette.count, 2)

    let replay = try CassetteTransport(try Cassette(text: cassette.text))
    let actual = await setting.client(over: replay).unary(TestMethods.echo, request)
    try requireEqual(TapedCalls.summary(actual), TapedCalls.summary(expected))
    try await replay.finish()
  }

  func testResponsesThatAreNoneOfTheProtocol() async throws {
    for setting in WireSetting.inMemory {
      for (status, type, body) in [
        (503, "text/html", "<h1>busy</h1>"), (200, "text/plain", "what?"), (404, "application/json", "{"),
        (429, "application/json", #"{"code": "unavailable", "message": "later"}"#),
        (400, "application/json", #"{ "title" : "none of ours" }"#),
        (502, "image/png", "\u{0}"),
      ] {
        let server = InMemoryTransport()
        server.onRaw(TestMethods.echo.path) { exchange in
          try await exchange.respond(
            status: status,
            headers: ["content-type": [type], "content-length": ["\(body.utf8.count)"]],
            body: ByteBuffer(string: body)
          )
        }
        let cassette = try Cassette()
        let request = EchoRequest.with { $0.payload.text = "a" }
        let recording = setting.client(over: try CassetteTransport(cassette, over: server, mode: .record))
        let expected = await recording.unary(TestMethods.echo, request)
        let replay = setting.client(over: try CassetteTransport(try Cassette(text: cassette.text)))
        let actual = await replay.unary(TestMethods.echo, request)
        try requireEqual(
          TapedCalls.summary(actual),
          TapedCalls.summary(expected),
          "\(setting) \(status)"
        )
      }
    }
  }

  /// Fields that the type does not have are kept: such a message is no JSON.
  func testUnknownFieldsAreKept() async throws {
    let setting = WireSetting(.connect)
    var response = EchoResponse.with { $0.payload.text = "a" }
    try response.merge(serializedBytes: [0xfa, 0x7f, 0x03, 0x61, 0x62, 0x63] as [UInt8])
    let server = InMemoryTransport()
    server.onUnary(TestMethods.echo) { [response] _, _ in response }
    let configuration = Cassette.Configuration(messages: TapedCalls.messages)
    let cassette = try Cassette(configuration: configuration)
    let recording = setting.client(over: try CassetteTransport(cassette, over: server, mode: .record))
    _ = await recording.unary(TestMethods.echo, EchoRequest())

    XCTAssertTrue(cassette.text.contains("base64"), cassette.text)
    let copy = try Cassette(text: cassette.text, configuration: configuration)
    let replay = setting.client(over: try CassetteTransport(copy))
    let actual = await replay.unary(TestMethods.echo, EchoRequest())
    try requireEqual(try actual.requireMessage(), response)
  }

  /// Equal calls are answered in the order in which they were made, others in any order, and many at once.
  func testOrderAndConcurrency() async throws {
    for network in [NetworkProtocol.connect, .grpc] {
      let setting = WireSetting(network)
      let count = Mutex(0)
      let server = InMemoryTransport()
      server.onUnary(TestMethods.echo) { request, _ in
        let number = count.withLock {
          $0 += 1
          return $0
        }
        return .with { $0.payload.text = "\(request.payload.text) \(number)" }
      }
      let cassette = try Cassette(configuration: .init(messages: TapedCalls.messages))
      let recording = setting.client(over: try CassetteTransport(cassette, over: server, mode: .record))
      for text in ["a", "b", "a", "c", "a"] {
        _ = try await recording.unary(TestMethods.echo, .with { $0.payload.text = text }).requireMessage()
      }

      let replay = setting.client(over: try CassetteTransport(cassette))
      for (text, answer) in [("c", "c 4"), ("a", "a 1"), ("a", "a 3"), ("b", "b 2"), ("a", "a 5")] {
        let response = await replay.unary(TestMethods.echo, .with { $0.payload.text = text })
        try requireEqual(try response.requireMessage().payload.text, answer)
      }

      let many = try Cassette(configuration: .init(messages: TapedCalls.messages))
      let all = setting.client(over: try CassetteTransport(many, over: server, mode: .record))
      let recorded = await Self.makeMany(all)
      let copy = try Cassette(text: many.text, configuration: .init(messages: TapedCalls.messages))
      let again = try CassetteTransport(copy)
      let replayed = await Self.makeMany(setting.client(over: again))
      try requireEqual(replayed, recorded)
      try await again.finish()
    }
  }

  private static func makeMany(_ client: ProtocolClient) async -> [String] {
    await withTaskGroup(of: String.self) { group in
      for number in 0..<50 {
        group.addTask {
          let response = await client.unary(TestMethods.echo, .with { $0.payload.text = "call \(number)" })
          return TapedCalls.summary(response)
        }
      }
      return await group.reduce(into: []) { $0.append($1) }.sorted()
    }
  }
}
