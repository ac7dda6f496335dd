internal import Connect
internal import ConnectInterceptors
internal import ConnectNIO
internal import LoopbackServer
internal import NIOCore
internal import SwiftProtobuf
internal import XCTest

/// Wire interceptors over HTTP/3, to aioquic and hypercorn, in all protocols.
final class HTTP3WireTests: XCTestCase {
  /// Cuts bodies in halves.
  private static let halver: WireInterceptorFactory = { _ in
    let halve = { (bytes: ByteBuffer, proceed: Proceed<WireChunkVerb>) in
      var rest = bytes
      let half = rest.readSlice(length: rest.readableBytes / 2) ?? ByteBuffer()
      proceed.send([half, rest])
    }
    return WireFunction(requestChunkFunction: halve, responseChunkFunction: halve)
  }

  /// Signs in a header: after trailers of a request, hypercorn answers nothing more on the connection.
  private static func makeSigner() -> RequestSigner {
    RequestSigner(
      keyID: "k1",
      secret: [1, 2, 3],
      options: .init(streamedBodies: .gathered(maximumBytes: 1 << 20))
    )
  }

  func testCallsWithInterceptors() async throws {
    for setting in HTTP3Setting.all {
      let server = try await PythonHTTP3Server.shared()
      let httpClient = NIOHTTPClient(configuration: server.configuration())
      let client = ProtocolClient(
        httpClient: WireHTTPClient(
          httpClient,
          interceptors: [Self.halver, { _ in Self.makeSigner() }, Self.halver]
        ),
        config: ProtocolClientConfig(
          host: "https://localhost:\(server.port(setting.server))",
          networkProtocol: setting.networkProtocol,
          codec: setting.codec,
          timeout: .seconds(60)
        )
      )
      let text = String(repeating: "text", count: 50_000)
      let response = await client.unary(TestMethods.echo, .with { $0.payload.text = text })
      XCTAssertEqual(
        response.message?.payload.text,
        text,
        "\(setting): \(String(describing: response.error))"
      )
      let signature = response.message?.seen.headers.first { $0.name == "x-signature" }
      XCTAssertEqual(signature?.values.first?.count, 64, "\(setting)")
      let sum = client.clientStream(TestMethods.sum)
      for number in 1...10 { try await sum.send(.with { $0.number = Int64(number) }) }
      let total = await sum.closeAndReceive()
      XCTAssertEqual(total.message?.sum, 55, "\(setting): \(String(describing: total.error))")
      await httpClient.shutdown(within: .seconds(10))
    }
  }
}
