// Extracted from Sources/Connect/Connect.docc/MigratingFromGRPCSwift.md by `make generate`.

import Connect
import ConnectNIO

struct KeyInterceptor: AsyncUnaryInterceptor, AsyncStreamInterceptor {
  func interceptUnary<Input, Output>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    var request = request
    request.headers["x-key"] = ["k3y"]
    return try await next(request)
  }

  func interceptStream<Input, Output>(
    _ request: StreamRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: StreamNext<Input, Output>
  ) async throws -> StreamResponse<Output> {
    var request = request
    request.head.headers["x-key"] = ["k3y"]
    return try await next(request)
  }
}

final class KeyHeader: Interceptor {
  func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(requestFunction: { request in request.headers["x-key"] = ["k3y"] })
  }
}

private func Connect_MigratingFromGRPCSwift_1() async throws {
  let httpClient = NIOHTTPClient()
  let client = ProtocolClient(
    httpClient: httpClient,
    config: ProtocolClientConfig(host: "http://localhost:50051", networkProtocol: .grpc, timeout: .seconds(10))
  )
  let eliza = Connectrpc_Eliza_V1_ElizaServiceClient(client: client)
  let answer = try await eliza.say(.with { $0.sentence = "Hello" })

  await httpClient.shutdown()
  _ = httpClient
  _ = client
  _ = eliza
  _ = answer
}

private func Connect_MigratingFromGRPCSwift_2() async throws {
  let eliza: Connectrpc_Eliza_V1_ElizaServiceClient = given()
  for try await message in eliza.introduce(.with { $0.name = "Ada" }) {
    print(message.sentence)
  }

  let chat = eliza.converse()
  try await chat.send(.with { $0.sentence = "Hello" })
  chat.finish()
  for try await reply in chat.messages { print(reply.sentence) }
  _ = eliza
  _ = chat
}

private func Connect_MigratingFromGRPCSwift_5() async throws {
  let config = ProtocolClientConfig(
    host: "http://localhost:50051",
    networkProtocol: .grpc,
    interceptors: [{ _ in KeyHeader() }]
  )
  _ = config
}
