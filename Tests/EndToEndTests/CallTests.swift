internal import Connect
internal import LoopbackServer
internal import SwiftProtobuf
import XCTest

/// Calls of each kind, in the async form, between this client and both servers over everything.
final class CallTests: XCTestCase {
  func testUnary() async throws {
    for setting in Setting.all {
      try await setting.withClient { client in
        let response = await client.unary(TestMethods.echo, .with { $0.payload = .varied })
        XCTAssertEqual(response.code, .ok, "\(setting): \(String(describing: response.error))")
        XCTAssertEqual(response.message?.payload, .varied, "\(setting)")
        expect(response.message?.seen, path: TestMethods.echo.path, setting)
      }
    }
  }

  func testServerStream() async throws {
    for setting in Setting.all {
      try await setting.withClient { client in
        let stream = client.serverStream(
          TestMethods.count,
          .with {
            $0.from = 9_007_199_254_740_993
            $0.instruction.messageCount = 5
          }
        )
        let outcome = await stream.results.collect()
        XCTAssertEqual(outcome.code, .ok, "\(setting): \(String(describing: outcome.error))")
        XCTAssertEqual(outcome.headers.count, 1, "\(setting)")
        XCTAssertEqual(
          outcome.messages.map(\.number),
          (0..<5).map { 9_007_199_254_740_993 + $0 },
          "\(setting)"
        )
        expect(outcome.messages.first?.seen, path: TestMethods.count.path, setting)
      }
    }
  }

  func testServerStreamWithoutMessages() async throws {
    for setting in Setting.all {
      try await setting.withClient { client in
        let outcome = await client.serverStream(TestMethods.count, CountRequest()).results.collect()
        XCTAssertEqual(outcome.code, .ok, "\(setting): \(String(describing: outcome.error))")
        XCTAssertEqual(outcome.messages.count, 0, "\(setting)")
      }
    }
  }

  func testClientStream() async throws {
    for setting in Setting.all {
      try await setting.withClient { client in
        let stream = client.clientStream(TestMethods.sum)
        for number in 1...100 { try await stream.send(.with { $0.number = Int64(number) }) }
        let response = await stream.closeAndReceive()
        XCTAssertEqual(response.code, .ok, "\(setting): \(String(describing: response.error))")
        XCTAssertEqual(response.message?.sum, 5050, "\(setting)")
        XCTAssertEqual(response.message?.seen.messageCount, 100, "\(setting)")
        expect(response.message?.seen, path: TestMethods.sum.path, setting)
      }
    }
  }

  func testClientStreamWithoutMessages() async throws {
    for setting in Setting.all {
      try await setting.withClient { client in
        let response = await client.clientStream(TestMethods.sum).closeAndReceive()
        XCTAssertEqual(response.message?.sum, 0, "\(setting): \(String(describing: response.error))")
      }
    }
  }

  /// Over HTTP/1.1 the answers come after the last message.
  func testHalfDuplexBidirectionalStream() async throws {
    for setting in Setting.all {
      try await setting.withClient { client in
        let stream = client.bidirectionalStream(TestMethods.converse)
        for text in ["a", "b", "c"] {
          try await stream.send(
            .with {
              $0.payload.text = text
              $0.instruction.halfDuplex = true
              $0.instruction.messageCount = 2
            }
          )
        }
        stream.finish()
        let outcome = await stream.results.collect()
        XCTAssertEqual(outcome.code, .ok, "\(setting): \(String(describing: outcome.error))")
        XCTAssertEqual(outcome.messages.map(\.payload.text), ["a", "a", "b", "b", "c", "c"], "\(setting)")
        XCTAssertEqual(outcome.messages.map(\.index), Array(0..<6), "\(setting)")
        expect(outcome.messages.first?.seen, path: TestMethods.converse.path, setting)
      }
    }
  }

  /// Each message is sent after the answer to the one before: 1,000 times with the binary encoding.
  func testFullDuplexRoundTrips() async throws {
    for setting in Setting.http2 {
      let count = setting.coding == .proto ? 1000 : 100
      try await setting.withClient { try await $0.expectRoundTrips(count, "\(setting)") }
    }
  }

  func testFullDuplexRoundTripsOverGRPCWeb() async throws {
    for setting in Setting.http2 where setting.coding == .proto {
      let count = setting.transport == .http2 ? 1000 : 100
      try await setting.withClient(networkProtocol: .grpcWeb) {
        try await $0.expectRoundTrips(count, "\(setting)")
      }
    }
  }

  /// The server's limit for a message is far above this, and so is the client's.
  func testLargeMessages() async throws {
    for setting in Setting.plain {
      try await setting.withClient { client in
        let text = String(repeating: "0123456789abcdef", count: 100_000)
        let response = await client.unary(
          TestMethods.echo,
          .with {
            $0.payload.text = text
            $0.instruction.responseBytes = 1_000_000
          }
        )
        XCTAssertEqual(
          response.message?.payload.text == text,
          true,
          "\(setting): \(String(describing: response.error))"
        )
        XCTAssertEqual(response.message?.padding.count, 1_000_000, "\(setting)")
      }
    }
  }

  func testUnimplemented() async throws {
    for setting in Setting.plain {
      try await setting.withClient { client in
        let response = await client.unary(TestMethods.unimplemented, EchoRequest())
        XCTAssertEqual(response.code, .unimplemented, "\(setting)")
        let unknown = MethodSpec<EchoRequest, EchoResponse>(path: "/no.such/Method", streamType: .unary)
        let missing = await client.unary(unknown, EchoRequest())
        XCTAssertEqual(missing.code, .unimplemented, "\(setting)")
        XCTAssertEqual(missing.error?.httpStatus, 404, "\(setting)")
      }
    }
  }
}

/// The server saw a POST over this version of HTTP in this encoding.
private func expect(_ seen: Seen?, path: String, _ setting: Setting) {
  XCTAssertEqual(seen?.httpMethod, "POST", "\(setting)")
  XCTAssertEqual(seen?.path, path, "\(setting)")
  XCTAssertEqual(seen?.httpVersion, setting.transport.version, "\(setting)")
  XCTAssertEqual(seen?.codec, setting.coding.rawValue, "\(setting)")
  XCTAssertEqual(seen?.values("connect-protocol-version"), ["1"], "\(setting)")
  XCTAssertEqual(seen?.values("user-agent").count, 1, "\(setting)")
}
