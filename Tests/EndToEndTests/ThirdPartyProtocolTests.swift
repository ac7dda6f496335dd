internal import Connect
internal import ConnectNIO
internal import LoopbackServer
internal import NIOCore
internal import SwiftProtobuf
import XCTest

/// gRPC against grpcio, gRPC-Web in both forms against Envoy in front of it.
final class ThirdPartyProtocolTests: XCTestCase {
  private func withClients(
    _ body: (String, ProtocolClient) async throws -> Void
  ) async throws {
    let grpc = try await PythonServer.shared(.grpc)
    var settings: [(NetworkProtocol, Int)] = [(.grpc, try grpc.port("plain"))]
    // As in requirements.txt: elsewhere there is no Envoy to install.
    #if os(Linux) && (arch(x86_64) || arch(arm64))
    let envoy = try await PythonServer.shared(.envoy)
    settings += [(.grpcWeb, try envoy.port("http")), (.grpcWebText, try envoy.port("http"))]
    #endif
    for (networkProtocol, port) in settings {
      for pool in [nil, GzipCompressionPool()] {
        let transport = NIOHTTPClient()
        let client = ProtocolClient(
          httpClient: transport,
          config: ProtocolClientConfig(
            host: "http://127.0.0.1:\(port)",
            networkProtocol: networkProtocol,
            timeout: .seconds(20),
            compression: Compression(requests: pool, minimumRequestBytes: 0)
          )
        )
        try await body("\(networkProtocol), compression \(pool?.name ?? "none")", client)
        await transport.shutdown()
      }
    }
  }

  func testUnary() async throws {
    try await self.withClients { setting, client in
      let request = EchoRequest.with {
        $0.payload = .varied
        $0.instruction.headers = [
          .with {
            $0.name = "x-one"; $0.values = ["a, b"]
          }
        ]
        $0.instruction.trailers = [
          .with {
            $0.name = "x-two"; $0.values = ["c"]
          }
        ]
      }
      let response = await client.unary(TestMethods.echo, request)
      XCTAssertEqual(response.message?.payload, .varied, "\(setting): \(String(describing: response.error))")
      XCTAssertEqual(response.headers["x-one"], ["a, b"], setting)
      XCTAssertEqual(response.trailers["x-two"], ["c"], setting)
    }
  }

  func testErrors() async throws {
    try await self.withClients { setting, client in
      let info = ErrorInfo.with { $0.reason = "DOOR_CLOSED" }
      let request = try EchoRequest.with {
        $0.instruction.failure.code = .notFound
        $0.instruction.failure.message = "closed, 請稍候 100%"
        $0.instruction.failure.details = [try Google_Protobuf_Any(message: info)]
      }
      let response = await client.unary(TestMethods.echo, request)
      XCTAssertEqual(response.code, .notFound, setting)
      XCTAssertEqual(response.error?.message, "closed, 請稍候 100%", setting)
      XCTAssertEqual(response.error?.unpackedDetails(ErrorInfo.self), [info], setting)
      let unimplemented = await client.unary(TestMethods.unimplemented, EchoRequest())
      XCTAssertEqual(unimplemented.code, .unimplemented, setting)
    }
  }

  func testStreams() async throws {
    try await self.withClients { setting, client in
      let outcome = await client.serverStream(
        TestMethods.count,
        .with {
          $0.instruction.messageCount = 5
          $0.instruction.responseBytes = 50_000
        }
      ).results.collect()
      XCTAssertEqual(outcome.messages.map(\.number), [0, 1, 2, 3, 4], setting)
      XCTAssertEqual(outcome.messages.map(\.padding.count), Array(repeating: 50_000, count: 5), setting)
      XCTAssertEqual(outcome.code, .ok, setting)
      // Envoy does not take base64 with padding in the middle, which is how request messages go one by one.
      guard !setting.hasPrefix("\(NetworkProtocol.grpcWebText)") else { return }
      let upload = client.clientStream(TestMethods.sum)
      for number in 1...10 { try await upload.send(.with { $0.number = Int64(number) }) }
      let sum = await upload.closeAndReceive()
      XCTAssertEqual(sum.message?.sum, 55, setting)
    }
  }
}
