internal import Connect
internal import ConnectNIO
internal import ConnectProtobufC
internal import ConnectTesting
internal import LoopbackServer
internal import NIOCore
internal import ProtobufCExamples
internal import ProtobufCStubs
import XCTest

/// What the generators write for messages of libprotobuf-c.
final class ProtobufCStubTests: XCTestCase {
  private func request(_ text: String) throws -> CMessage<Connect__Test__V1__EchoRequest> {
    var request = CMessage<Connect__Test__V1__EchoRequest>()
    try request.update { fields, arena in
      fields.payload = try arena.message { (payload: inout Connect__Test__V1__Payload) in
        payload.text = try arena.string(text)
      }
    }
    return request
  }

  func testAClient() async throws {
    let server = try await LoopbackServer.start(.plaintext)
    let httpClient = NIOHTTPClient(configuration: NIOHTTPClient.Configuration(version: .http2Only))
    let client = ProtocolClient(httpClient: httpClient, config: ProtocolClientConfig(host: server.url))
    let service = Connect__Test__V1__TestServiceClient(client: client)

    let response = try await service.echo(self.request("from C"))
    XCTAssertEqual(response.payload?.text, "from C")

    var count = CMessage<Connect__Test__V1__CountRequest>()
    count.update { fields, arena in
      fields.from = 7
      fields.instruction = arena.message { (instruction: inout Connect__Test__V1__Instruction) in
        instruction.message_count = 2
      }
    }
    var numbers: [Int64] = []
    for try await message in service.count(count) { numbers.append(message.number) }
    XCTAssertEqual(numbers, [7, 8])
    await httpClient.shutdown(within: .seconds(5))
    await server.stop()
  }

  func testAMock() async throws {
    let mock = Connect__Test__V1__TestServiceClientMock()
    mock.mockEcho.answer { request, _ in
      var response = CMessage<Connect__Test__V1__EchoResponse>()
      try response.update { fields, arena in
        fields.payload = try arena.message { (payload: inout Connect__Test__V1__Payload) in
          payload.text = try arena.string("mocked: \(request.payload?.text ?? "")")
        }
      }
      return response
    }
    let service: any Connect__Test__V1__TestServiceClientInterface = mock

    let response = try await service.echo(self.request("C"))

    XCTAssertEqual(response.payload?.text, "mocked: C")
    let call = try await mock.mockEcho.nextCall()
    XCTAssertEqual(call.request?.payload?.text, "C")
  }
}
