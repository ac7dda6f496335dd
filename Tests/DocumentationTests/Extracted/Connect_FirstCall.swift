// Extracted from Sources/Connect/Connect.docc/FirstCall.md by `make generate`.

import Connect
import ConnectNIO
import NIOCore

private func Connect_FirstCall_1() async throws {
  let httpClient = NIOHTTPClient()
  let client = ProtocolClient(
    httpClient: httpClient,
    config: ProtocolClientConfig(host: "https://demo.connectrpc.com")
  )
  let eliza = Connectrpc_Eliza_V1_ElizaServiceClient(client: client)

  let answer = try await eliza.say(.with { $0.sentence = "Hello" })
  print(answer.sentence)

  await httpClient.shutdown()
  _ = httpClient
  _ = client
  _ = eliza
  _ = answer
}

private func Connect_FirstCall_2() async throws {
  let eliza: Connectrpc_Eliza_V1_ElizaServiceClient = given()
  let response = await eliza.say(request: .with { $0.sentence = "Hello" })
  switch response.result {
  case .success(let message): print(message.sentence, response.headers)
  case .failure(let error): print(error.code, error.message ?? "")
  }
  _ = eliza
  _ = response
}

private func Connect_FirstCall_3() async throws {
  let eliza: Connectrpc_Eliza_V1_ElizaServiceClient = given()
  let options = CallOptions(headers: ["x-request-id": ["42"]], timeout: .seconds(2))
  let answer = try await eliza.say(.with { $0.sentence = "Hello" }, options: options)
  _ = eliza
  _ = options
  _ = answer
}

private func Connect_FirstCall_4() async throws {
  let eliza: Connectrpc_Eliza_V1_ElizaServiceClient = given()
  var options = CallOptions()
  options.headers["x-tag"] = ["blue", "green"]
  options.headers.addBinary(name: "x-key-bin", value: ByteBuffer(bytes: [1, 2, 3]))

  let response = await eliza.say(request: .with { $0.sentence = "Hello" }, options: options)
  let server = response.headers.first("server")
  let keys = try response.trailers.binaryValues("x-key-bin")
  _ = eliza
  _ = options
  _ = response
  _ = server
  _ = keys
}

private func Connect_FirstCall_5() async throws {
  let eliza: Connectrpc_Eliza_V1_ElizaServiceClient = given()
  let handle = eliza.say(request: .with { $0.sentence = "Hello" }) { response in
    print(response.message?.sentence ?? "\(response.code)")
  }
  handle.cancel()
  _ = eliza
  _ = handle
}

private func Connect_FirstCall_6() async throws {
  let client: ProtocolClient = given()
  let say = MethodSpec<Connectrpc_Eliza_V1_SayRequest, Connectrpc_Eliza_V1_SayResponse>(
    path: "/connectrpc.eliza.v1.ElizaService/Say",
    streamType: .unary,
    idempotencyLevel: .noSideEffects
  )
  let response = await client.unary(say, .with { $0.sentence = "Hello" })
  let answer = try await client.unary(say, .with { $0.sentence = "Hello" }).get()
  _ = client
  _ = say
  _ = response
  _ = answer
}

private func Connect_FirstCall_7() async throws {
  let httpClient = NIOHTTPClient(configuration: .init(version: .http2Only))
  _ = httpClient
}
