internal import Connect
internal import ConnectNIO
internal import ConnectTesting
internal import Foundation
internal import LoopbackServer
internal import NIOCore
internal import SwiftProtobuf
import XCTest

/// Cassettes of calls over sockets: the server is stopped, and the same calls have the same results.
final class CassetteTests: XCTestCase {
  private static let messages = Cassette.Messages.of(
    TestMethods.echo,
    TestMethods.lookup,
    TestMethods.count,
    TestMethods.sum,
    TestMethods.converse
  )

  /// The two lines that the article on cassettes adds to a test, first recording and then replaying.
  func testInTwoLines() async throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("cassettes-\(UUID())")
    let file = folder.appendingPathComponent("GreetingTests.swift").path
    defer { try? FileManager.default.removeItem(at: folder) }
    try await EmbeddedServer.run(.http2) { embedded in
      let transport = try CassetteTransport(
        forTest: "greeting",
        over: embedded.httpClient,
        mode: .record,
        file: file
      )
      let client = ProtocolClient(httpClient: transport, config: .forTests(host: embedded.server.url))
      let response = await client.unary(TestMethods.echo, .with { $0.payload.text = "hello" })
      XCTAssertEqual(response.message?.payload.text, "hello")
      try await transport.finish()
    }

    let transport = try CassetteTransport(
      forTest: "greeting",
      over: NIOHTTPClient(),
      mode: .replay,
      file: file
    )
    addTeardownBlock { try await transport.finish() }
    let client = ProtocolClient(httpClient: transport, config: .forTests(host: "http://nowhere.invalid"))
    let response = await client.unary(TestMethods.echo, .with { $0.payload.text = "hello" })
    XCTAssertEqual(response.message?.payload.text, "hello")
  }

  func testEachKindOfCall() async throws {
    for (version, network) in [
      (Version.http1, NetworkProtocol.connect), (.http2, .connect), (.http2, .grpc), (.http1, .grpcWeb),
      (.http2, .grpcWeb),
    ] {
      for coding in Coding.allCases {
        let what = "\(version) \(network) \(coding)"
        let configuration = Cassette.Configuration(messages: Self.messages)
        let cassette = try Cassette(configuration: configuration)
        let (host, expected) = try await EmbeddedServer.run(version, coding: coding) { embedded in
          let recording = try CassetteTransport(cassette, over: embedded.httpClient, mode: .record)
          let results = try await Self.makeCalls(recording, embedded.server.url, network, coding)
          try await recording.finish()
          return (embedded.server.url, results)
        }
        XCTAssertTrue(expected[0].contains("größer"), what)

        let replay = try CassetteTransport(try Cassette(text: cassette.text, configuration: configuration))
        let actual = try await Self.makeCalls(replay, host, network, coding)
        XCTAssertEqual(actual, expected, what)
        try await replay.finish()
      }
    }
  }

  /// A server that is not there.
  func testRefusedConnection() async throws {
    let server = try await LoopbackServer.start()
    let host = server.url
    await server.stop()
    let cassette = try Cassette()
    let expected = try await withHTTPClient { httpClient in
      let recording = try CassetteTransport(cassette, over: httpClient, mode: .record)
      let client = ProtocolClient(httpClient: recording, config: .forTests(host: host))
      return await client.unary(TestMethods.echo, EchoRequest()).error
    }
    XCTAssertEqual(expected?.code, .unavailable)
    let replay = try CassetteTransport(try Cassette(text: cassette.text))
    let client = ProtocolClient(httpClient: replay, config: .forTests(host: host))
    let actual = await client.unary(TestMethods.echo, EchoRequest()).error
    XCTAssertEqual(actual?.code, .unavailable)
    XCTAssertEqual(actual?.message, expected?.message)
    XCTAssertEqual(actual?.isConnectionLost, expected?.isConnectionLost)
  }

  private func withHTTPClient<Result>(_ body: (NIOHTTPClient) async throws -> Result) async throws -> Result {
    let httpClient = NIOHTTPClient()
    do {
      let result = try await body(httpClient)
      try await shutDown(httpClient)
      return result
    } catch {
      await httpClient.shutdown(within: .zero)
      throw error
    }
  }

  private static func makeCalls(
    _ transport: CassetteTransport,
    _ host: String,
    _ network: NetworkProtocol,
    _ coding: Coding
  ) async throws -> [String] {
    var config = ProtocolClientConfig.forTests(host: host, coding: coding)
    config.networkProtocol = network
    config.unaryGET = .alwaysEnabled
    let client = ProtocolClient(httpClient: transport, config: config)
    let instruction = Instruction.with {
      $0.headers = [.with { ($0.name, $0.values) = ("x-head", ["1", "2"]) }]
      $0.trailers = [.with { ($0.name, $0.values) = ("x-trail", ["3"]) }]
    }
    let detail = try Google_Protobuf_Any(message: ErrorInfo.with { $0.reason = "gone" })
    var failing = instruction
    failing.failure = .with {
      $0.code = .notFound
      $0.message = "no such ä"
      $0.details = [detail]
      $0.afterMessages = 2
    }
    failing.messageCount = 3
    var all: [String] = []
    for instruction in [instruction, failing] {
      let echo = await client.unary(
        TestMethods.echo,
        .with {
          $0.payload = .varied
          $0.instruction = instruction
        }
      )
      all.append(Self.summary(echo))
      let lookup = await client.unary(
        TestMethods.lookup,
        .with { ($0.key, $0.instruction) = ("a b", instruction) }
      )
      all.append(Self.summary(lookup))
      let count = client.serverStream(
        TestMethods.count,
        .with { ($0.from, $0.instruction) = (5, instruction) }
      )
      all.append(Self.summary(await count.results.collect()))
      let sum = client.clientStream(TestMethods.sum)
      for number: Int64 in 1...3 {
        try await sum.send(.with { ($0.number, $0.instruction) = (number, instruction) })
      }
      all.append(Self.summary(await sum.closeAndReceive()))
      let converse = client.bidirectionalStream(TestMethods.converse)
      for text in ["a", "b"] {
        try await converse.send(
          .with {
            $0.payload.text = text
            $0.instruction = instruction
            $0.instruction.halfDuplex = true
          }
        )
      }
      converse.finish()
      all.append(Self.summary(await converse.results.collect()))
    }
    return all
  }

  private static func summary<M: SwiftProtobuf.Message>(_ response: ResponseMessage<M>) -> String {
    "\(response.message?.textFormatString() ?? self.summary(response.error)) \(self.lines(response.headers)) "
      + "\(self.lines(response.trailers))"
  }

  private static func summary<M: SwiftProtobuf.Message>(_ outcome: StreamOutcome<M>) -> String {
    "\(outcome.headers.map(self.lines)) \(outcome.messages.map { $0.textFormatString() }) \(self.summary(outcome.error)) "
      + "\(self.lines(outcome.trailers))"
  }

  private static func summary(_ error: ConnectError?) -> String {
    guard let error else { return "no error" }
    return
      "\(error.debugDescription) \(error.details.map { Array($0.value.readableBytesView) }) \(self.lines(error.metadata))"
  }

  /// Without the date, which is not recorded.
  private static func lines(_ headers: Headers) -> [String] {
    headers.filter { $0.name != "date" }.map { "\($0.name): \($0.value)" }.sorted()
  }
}
