import ConnectNIO
import ConnectSwiftCompatibility
import LoopbackServer
import XCTest

/// The stubs in connect-swift's form over sockets, in each of the protocols.
final class WireTests: XCTestCase {
  private func expectCalls(
    _ networkProtocol: NetworkProtocol,
    _ codec: Codec
  ) async throws {
    let server = try await LoopbackServer.start()
    let transport = NIOHTTPClient()
    let steps = Steps()
    let client = Connect_Test_V1_TestServiceClient(
      client: ProtocolClient(
        httpClient: transport,
        config: ProtocolClientConfig(
          host: server.url,
          networkProtocol: networkProtocol,
          codec: codec,
          timeout: 60,
          interceptors: [InterceptorFactory { _ in NotingInterceptor("a", steps) }]
        )
      )
    )
    let echo = await client.echo(request: .with { $0.payload.text = "hi" }, headers: ["x-call": ["1"]])
    XCTAssertEqual(echo.message?.payload.text, "hi", "\(networkProtocol) \(echo)")
    let failure = await client.echo(
      request: .with {
        $0.instruction.failure = .with {
          $0.code = .permissionDenied
          $0.message = "no"
        }
      }
    )
    XCTAssertEqual(failure.error?.code, .permissionDenied)
    XCTAssertEqual(failure.error?.message, "no")

    let count = client.count()
    try count.send(
      .with {
        $0.from = 1
        $0.instruction.messageCount = 3
      }
    )
    var numbers: [Int64] = []
    for await result in count.results() {
      if let message = result.messageValue { numbers.append(message.number) }
    }
    XCTAssertEqual(numbers, [1, 2, 3])

    let sum = client.sum()
    try sum.send(.with { $0.number = 1 }).send(.with { $0.number = 2 })
    sum.closeAndReceive()
    var sums: [Int64] = []
    for await result in sum.results() {
      if let message = result.messageValue { sums.append(message.sum) }
    }
    XCTAssertEqual(sums, [3])

    let converse = client.converse()
    try converse.send(.with { $0.payload.text = "a" })
    converse.close()
    var texts: [String] = []
    for await result in converse.results() {
      if let message = result.messageValue { texts.append(message.payload.text) }
    }
    XCTAssertEqual(texts, ["a"])
    XCTAssertEqual(steps.all.filter { $0 == "a start" }.count, 3)
    await transport.shutdown()
    await server.stop()
  }

  func testConnect() async throws {
    try await self.expectCalls(.connect, JSONCodec())
  }

  func testGRPC() async throws {
    try await self.expectCalls(.grpc, ProtoCodec())
  }

  func testGRPCWeb() async throws {
    try await self.expectCalls(.grpcWeb, ProtoCodec())
  }
}
