import Connect
import ConnectTesting
import LoopbackServer
import SwiftProtobuf
import TestSupport
import XCTest

/// Calls with an authority of their own, recorded and replayed.
final class CassetteAuthorityTests: XCTestCase {
  func testVirtualHosts() async throws {
    for setting in WireSetting.inMemory {
      let server = setting.transport
      server.onUnary(TestMethods.echo) { _, context in
        .with { $0.payload.text = context.request.authority ?? "none" }
      }
      func texts(_ transport: CassetteTransport, _ authorities: [String?]) async throws -> [String] {
        var texts: [String] = []
        for authority in authorities {
          let options = CallOptions(authority: authority)
          let response = await setting.client(over: transport).unary(
            TestMethods.echo,
            .init(),
            options: options
          )
          texts.append(try response.get().payload.text)
        }
        return texts
      }
      let cassette = try Cassette()
      let recording = try CassetteTransport(cassette, over: server, mode: .record)
      let recorded = try await texts(recording, [nil, "one.test", "two.test:8443"])
      XCTAssertEqual(recorded, ["none", "one.test", "two.test:8443"])
      try await recording.finish()
      XCTAssertTrue(cassette.text.contains(#""host": "one.test""#), cassette.text)

      let replay = try CassetteTransport(try Cassette(text: cassette.text))
      let replayed = try await texts(replay, ["two.test:8443", nil, "one.test"])
      XCTAssertEqual(replayed, ["two.test:8443", "none", "one.test"])
      try await replay.finish()
    }
  }
}
