internal import Connect
internal import ConnectNIO
internal import LoopbackServer
internal import NIOCore
internal import SwiftProtobuf
import XCTest

/// The limit for header lists, as the transport has it, holds for trailers that come in the body, too.
final class MetadataLimitTests: XCTestCase {
  private static let value = String(repeating: "v", count: 10_000)

  private func envelope(_ flags: UInt8, _ text: String) -> ByteBuffer {
    var bytes = ByteBuffer(integer: flags)
    bytes.writeInteger(UInt32(text.utf8.count))
    bytes.writeString(text)
    return bytes
  }

  func testTrailersInTheBody() async throws {
    let bodies: [(NetworkProtocol, type: String, body: ByteBuffer)] = [
      (.connect, "application/connect+proto", self.envelope(2, #"{"metadata":{"x":["\#(Self.value)"]}}"#)),
      (.grpcWeb, "application/grpc-web+proto", self.envelope(0x80, "grpc-status: 0\r\nx: \(Self.value)\r\n")),
    ]
    for (networkProtocol, type, body) in bodies {
      for (limit, code) in [(5_000, Code.resourceExhausted), (20_000, .ok)] {
        let configure: (inout NIOHTTPClient.Configuration, inout ProtocolClientConfig) -> Void = {
          $0.http1.maxHeaderListSize = limit
          $1.networkProtocol = networkProtocol
        }
        try await EmbeddedServer.run(.http1, configure: configure) { embedded in
          embedded.server.onRaw("/large") { _, responder in
            try await responder.respond(headers: ["content-type": type], body: body)
          }
          let method = MethodSpec<EchoRequest, EchoResponse>(path: "/large", streamType: .serverStream)
          let outcome = await embedded.client.serverStream(method, EchoRequest()).results.collect()
          XCTAssertEqual(outcome.code, code, "\(networkProtocol), \(limit)")
          if code == .ok { XCTAssertEqual(outcome.trailers["x"], [Self.value]) }
        }
      }
    }
  }
}
