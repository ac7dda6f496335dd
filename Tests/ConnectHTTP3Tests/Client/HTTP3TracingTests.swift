internal import Connect
internal import ConnectInterceptors
internal import ConnectNIO
internal import InMemoryTracing
internal import LoopbackServer
internal import SwiftProtobuf
internal import Tracing
internal import XCTest

/// What traces say of calls over HTTP/3.
final class HTTP3TracingTests: XCTestCase {
  func testNetworkOfAnAttempt() async throws {
    let server = try await PythonHTTP3Server.shared()
    let httpClient = NIOHTTPClient(configuration: server.configuration())
    let tracer = InMemoryTracer()
    let client = ProtocolClient(
      httpClient: httpClient,
      config: ProtocolClientConfig(
        host: "https://localhost:\(server.port(.aioquic))",
        networkProtocol: .connect,
        codec: ProtoCodec(),
        interceptors: [{ TracingInterceptor(config: $0, tracer: tracer, spans: .attempts) }]
      )
    )
    let response = await client.unary(TestMethods.echo, .with { $0.payload.text = "x" })
    XCTAssertEqual(response.code, .ok, "\(String(describing: response.error))")
    await httpClient.shutdown(within: .seconds(5))
    let span = try XCTUnwrap(tracer.finishedSpans.first)
    XCTAssertEqual(span.attributes["network.transport"]?.toSpanAttribute(), .string("quic"))
    XCTAssertEqual(span.attributes["network.protocol.version"]?.toSpanAttribute(), .string("3"))
    XCTAssertEqual(span.attributes["network.peer.address"]?.toSpanAttribute(), .string("127.0.0.1"))
  }
}
