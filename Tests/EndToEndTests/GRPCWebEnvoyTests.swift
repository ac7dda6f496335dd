// As in requirements.txt: elsewhere there is no Envoy to install.
#if os(Linux) && (arch(x86_64) || arch(arm64))
internal import Connect
internal import ConnectNIO
internal import LoopbackServer
internal import NIOCore
internal import SwiftProtobuf
internal import TestSupport
import XCTest

/// gRPC-Web in its binary and its text form, gRPC, and unary calls of Connect, with Envoy in front of grpcio.
final class GRPCWebEnvoyTests: XCTestCase {
  private static let web = [NetworkProtocol.grpcWeb, .grpcWebText].flatMap { networkProtocol in
    Version.allCases.map { WireSetting(networkProtocol, over: $0) }
  }
  private static let streams = web + [WireSetting(.grpc, over: .http2)]
  /// Envoy takes one message only in the text form of a request: it refuses padding in the middle.
  private static let clientStreams = streams.filter {
    $0.networkProtocol != .grpcWebText
  }
  private static let connect = Version.allCases.map { WireSetting(.connect, over: $0) }
  private static let all = streams + connect

  private func withClients(
    _ settings: [WireSetting],
    _ body: (ProtocolClient, WireSetting) async throws -> Void
  ) async throws {
    let server = try await PythonServer.shared(.envoy)
    let host = "http://127.0.0.1:\(try server.port("http"))"
    for setting in settings {
      try await withPlainClient(
        setting.version ?? .http2,
        host: host,
        configure: { $1.networkProtocol = setting.networkProtocol }
      ) { try await body($0, setting) }
    }
  }

  func testUnary() async throws {
    try await self.withClients(Self.all) { client, setting in
      let response = await client.unary(TestMethods.echo, .with { $0.payload = .varied })
      XCTAssertEqual(response.message?.payload, .varied, "\(setting): \(String(describing: response.error))")
      XCTAssertEqual(response.code, .ok, "\(setting)")
    }
  }

  func testServerStream() async throws {
    try await self.withClients(Self.streams) { client, setting in
      let outcome = await client.serverStream(TestMethods.count, .with { $0.instruction.messageCount = 20 })
        .results.collect()
      XCTAssertEqual(outcome.code, .ok, "\(setting): \(String(describing: outcome.error))")
      XCTAssertEqual(outcome.messages.map(\.number), Array(0..<20), "\(setting)")
    }
  }

  func testClientStream() async throws {
    try await self.withClients(Self.clientStreams) { client, setting in
      let stream = client.clientStream(TestMethods.sum)
      for number in 1...10 { try await stream.send(.with { $0.number = Int64(number) }) }
      let response = await stream.closeAndReceive()
      XCTAssertEqual(response.message?.sum, 55, "\(setting): \(String(describing: response.error))")
    }
  }

  func testHalfDuplexStream() async throws {
    try await self.withClients(Self.clientStreams) { client, setting in
      let stream = client.bidirectionalStream(TestMethods.converse)
      for text in ["a", "b", "c"] {
        try await stream.send(
          .with {
            $0.payload.text = text
            $0.instruction.halfDuplex = true
          }
        )
      }
      stream.finish()
      let outcome = await stream.results.collect()
      XCTAssertEqual(outcome.code, .ok, "\(setting): \(String(describing: outcome.error))")
      XCTAssertEqual(outcome.messages.map(\.payload.text), ["a", "b", "c"], "\(setting)")
    }
  }

  /// Every length of padding occurs in the middle of a body of base64.
  func testMessagesOfManySizes() async throws {
    try await self.withClients(Self.web) { client, setting in
      for size in 0..<40 {
        let text = String(repeating: "x", count: size)
        let stream = await client.serverStream(
          TestMethods.count,
          .with {
            $0.instruction.messageCount = 3
            $0.instruction.responseBytes = UInt32(size)
          }
        ).results.collect()
        XCTAssertEqual(stream.messages.map(\.padding.count), [size, size, size], "\(setting)")
        let unary = await client.unary(TestMethods.echo, .with { $0.payload.text = text })
        XCTAssertEqual(unary.message?.payload.text, text, "\(setting): \(String(describing: unary.error))")
      }
      let large = await client.unary(TestMethods.echo, .with { $0.instruction.responseBytes = 2_000_000 })
      XCTAssertEqual(
        large.message?.padding.count,
        2_000_000,
        "\(setting): \(String(describing: large.error))"
      )
    }
  }

  func testErrorWithMetadata() async throws {
    let info = ErrorInfo.with { $0.reason = "r" }
    let detail = try Google_Protobuf_Any(message: info)
    let instruction = Instruction.with {
      $0.headers = [.with { ($0.name, $0.values) = ("x-head", ["1"]) }]
      $0.trailers = [.with { ($0.name, $0.values) = ("x-trail", ["2: 3, 4"]) }]
      $0.messageCount = 3
      $0.failure.code = .outOfRange
      $0.failure.message = "too far: größer"
      $0.failure.details = [detail]
      $0.failure.afterMessages = 2
    }
    try await self.withClients(Self.streams) { client, setting in
      let unary = await client.unary(TestMethods.echo, .with { $0.instruction = instruction })
      let stream = await client.serverStream(TestMethods.count, .with { $0.instruction = instruction })
        .results.collect()
      XCTAssertEqual(stream.messages.count, 2, "\(setting)")
      for error in [unary.error, stream.error] {
        XCTAssertEqual(error?.code, .outOfRange, "\(setting): \(String(describing: error))")
        XCTAssertEqual(error?.message, "too far: größer", "\(setting)")
        XCTAssertEqual(
          error?.details.map { Array($0.value.readableBytesView) },
          [Array(detail.value)],
          "\(setting)"
        )
        XCTAssertEqual(error?.unpackedDetails(ErrorInfo.self), [info], "\(setting)")
        XCTAssertEqual(error?.metadata["x-trail"], ["2: 3, 4"], "\(setting)")
      }
    }
  }

  /// Envoy's bridge passes on headers and trailers, and the message as gRPC encodes it: it escapes what is not ASCII.
  func testErrorWithMetadataOverConnect() async throws {
    let info = ErrorInfo.with { $0.reason = "r" }
    let detail = try Google_Protobuf_Any(message: info)
    let request = EchoRequest.with {
      $0.instruction.headers = [.with { ($0.name, $0.values) = ("x-head", ["1"]) }]
      $0.instruction.trailers = [.with { ($0.name, $0.values) = ("x-trail", ["2: 3, 4"]) }]
      $0.instruction.failure.code = .outOfRange
      $0.instruction.failure.message = "too far"
      $0.instruction.failure.details = [detail]
    }
    try await self.withClients(Self.connect) { client, setting in
      let response = await client.unary(TestMethods.echo, request)
      let error = response.error
      XCTAssertEqual(error?.code, .outOfRange, "\(setting): \(String(describing: error))")
      XCTAssertEqual(error?.message, "too far", "\(setting)")
      XCTAssertEqual(error?.unpackedDetails(ErrorInfo.self), [info], "\(setting)")
      XCTAssertEqual(error?.metadata["x-head"], ["1"], "\(setting)")
      XCTAssertEqual(error?.metadata["x-trail"], ["2: 3, 4"], "\(setting)")
      XCTAssertEqual(response.trailers["x-trail"], ["2: 3, 4"], "\(setting)")
    }
  }

  func testFullDuplexRoundTrips() async throws {
    try await self.withClients([WireSetting(.grpcWeb, over: .http2)]) { client, setting in
      try await client.expectRoundTrips(1000, "\(setting)")
    }
  }

  func testDeadline() async throws {
    try await self.withClients(Self.all) { client, setting in
      let response = await client.unary(
        TestMethods.echo,
        .with { $0.instruction.delayMs = 60_000 },
        options: CallOptions(timeout: .milliseconds(100))
      )
      XCTAssertEqual(response.code, .deadlineExceeded, "\(setting): \(String(describing: response.error))")
    }
  }
}
#endif
