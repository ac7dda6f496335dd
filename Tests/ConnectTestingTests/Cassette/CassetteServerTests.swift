import Connect
import ConnectTesting
import LoopbackServer
import SwiftProtobuf
import TestSupport
import XCTest

/// Cassettes as servers in memory.
final class CassetteServerTests: XCTestCase {
  private static let configuration = Cassette.Configuration(messages: TapedCalls.messages)

  func testACassetteIsAServer() async throws {
    for setting in WireSetting.inMemory {
      let cassette = try Cassette(configuration: Self.configuration)
      let recording = try CassetteTransport(cassette, over: TapedCalls.server(setting), mode: .record)
      let expected = try await TapedCalls.make(setting.client(over: recording))

      let server = InMemoryTransport()
      server.play(cassette)
      let actual = try await TapedCalls.make(setting.client(over: server))
      try requireEqual(actual, expected, "\(setting)")
      XCTAssertEqual(cassette.unusedCalls, [], "\(setting)")
    }
  }

  /// Handlers of other methods stay, and what is not in the cassette says so.
  func testBesideOtherHandlers() async throws {
    let setting = WireSetting(.grpc)
    let cassette = try Cassette(configuration: Self.configuration)
    let recording = try CassetteTransport(cassette, over: TapedCalls.server(setting), mode: .record)
    _ = await setting.client(over: recording).unary(TestMethods.lookup, .with { $0.key = "a" })

    let server = InMemoryTransport()
    server.onUnary(TestMethods.echo) { request, _ in .with { $0.payload = request.payload } }
    server.play(cassette)
    let client = setting.client(over: server)
    _ = try await client.unary(TestMethods.echo, EchoRequest()).requireMessage()
    let miss = try await client.unary(TestMethods.lookup, .with { $0.key = "b" }).requireError(
      .failedPrecondition
    )
    XCTAssertTrue(miss.message?.contains(#"+ {"key": "b"}"#) == true, "\(miss)")
    XCTAssertEqual(cassette.missingCalls.count, 1)
    try requireEqual(
      try await client.unary(TestMethods.lookup, .with { $0.key = "a" }).requireMessage().value,
      "a=1"
    )
  }

  /// A proxy records what clients ask a server's reflection. Nobody needs to ask that again.
  func testReflectionIsNotUnused() async throws {
    let exchange = """
      "headers": {}, "http": "POST", "over": "HTTP/2", "wire": "grpc+proto", "parts": [{"cancel": {}}]
      """
    func text(_ calls: [String]) -> String {
      let exchanges = calls.map { #"{"call": "\#($0)", \#(exchange)}"# }.joined(separator: ", ")
      return #"{"cassette": 1, "exchanges": [\#(exchanges)]}"#
    }
    let reflection = ["v1", "v1alpha"].map {
      "/grpc.reflection.\($0).ServerReflection/ServerReflectionInfo"
    }
    let cassette = try Cassette(text: text(reflection + ["/base\(reflection[0])"]))
    XCTAssertEqual(cassette.unusedCalls, [])
    XCTAssertEqual(cassette.count, 3)
    try await CassetteTransport(cassette).finish()
    let other = try Cassette(text: text(["/a.B/C", "/grpc.reflection.v1.Other/C"] + reflection))
    XCTAssertEqual(other.unusedCalls.count, 2)
    do {
      try await CassetteTransport(other).finish()
      XCTFail("no error")
    } catch {
      XCTAssertTrue("\(error)".contains("2 calls were recorded and never asked"), "\(error)")
    }
  }

  func testTimesAndFaults() async throws {
    let executor = VirtualExecutor()
    let setting = WireSetting(.grpcWeb)
    let origin = InMemoryTransport(executor: executor)
    origin.onUnary(TestMethods.echo) { request, context in
      try await context.sleep(for: .seconds(5))
      return .with { $0.payload = request.payload }
    }
    let cassette = try Cassette(configuration: Self.configuration)
    let recording = setting.client(over: try CassetteTransport(cassette, over: origin, mode: .record))
    _ = try await executor.lettingTimePass { await recording.unary(TestMethods.echo, EchoRequest()) }

    let virtual = VirtualExecutor()
    let server = InMemoryTransport(executor: virtual)
    server.play(cassette, timing: .recorded)
    server.inject(.splitEvery(1))
    let client = setting.client(over: server)
    let response = try await virtual.lettingTimePass { await client.unary(TestMethods.echo, EchoRequest()) }
    XCTAssertNotNil(try response.requireMessage())
    XCTAssertEqual(virtual.now, .seconds(5))
  }
}
