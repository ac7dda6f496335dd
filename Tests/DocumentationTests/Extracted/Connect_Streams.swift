// Extracted from Sources/Connect/Connect.docc/Streams.md by `make generate`.

import Connect

private func Connect_Streams_1() async throws {
  let eliza: Connectrpc_Eliza_V1_ElizaServiceClient = given()
  for try await message in eliza.introduce(.with { $0.name = "Ada" }) {
    print(message.sentence)
  }
  _ = eliza
}

private func Connect_Streams_2() async throws {
  let eliza: Connectrpc_Eliza_V1_ElizaServiceClient = given()
  let stream = eliza.introduce(request: .with { $0.name = "Ada" })
  for await result in stream.results {
    switch result {
    case .headers(let headers): print(headers)
    case .message(let message): print(message.sentence)
    case .complete(let code, let error, let trailers): print(code, error?.message ?? "", trailers)
    }
  }
  _ = eliza
  _ = stream
}

private func Connect_Streams_3() async throws {
  let client: ProtocolClient = given()
  let sum = MethodSpec<Connectrpc_Eliza_V1_SayRequest, Connectrpc_Eliza_V1_SayResponse>(
    path: "/acme.v1.Sums/Sum",
    streamType: .clientStream
  )
  let upload = client.clientStream(sum)
  for sentence in ["1", "2", "3"] {
    try await upload.send(.with { $0.sentence = sentence })
  }
  let total = try await upload.closeAndReceive().get()
  _ = client
  _ = sum
  _ = upload
  _ = total
}

private func Connect_Streams_4() async throws {
  let eliza: Connectrpc_Eliza_V1_ElizaServiceClient = given()
  let chat = eliza.converse()
  try await withThrowingTaskGroup(of: Void.self) { group in
    group.addTask {
      for sentence in ["Hello", "I feel unhappy", "Goodbye"] {
        try await chat.send(.with { $0.sentence = sentence })
      }
      chat.finish()
    }
    for try await message in chat.messages { print(message.sentence) }
    try await group.waitForAll()
  }
  _ = eliza
  _ = chat
}

private func Connect_Streams_5() async throws {
  let eliza: Connectrpc_Eliza_V1_ElizaServiceClient = given()
  let handle = eliza.converse { result in
    switch result {
    case .headers: break
    case .message(let message): print(message.sentence)
    case .complete(let code, _, _): print(code)
    }
  }
  handle.send(.with { $0.sentence = "Hello" }) { error in
    if let error { print("not sent:", error) }
  }
  handle.finish()
  _ = eliza
  _ = handle
}

private func Connect_Streams_6() async throws {
  let eliza: Connectrpc_Eliza_V1_ElizaServiceClient = given()
  let handle = eliza.introduce(
    request: .with { $0.name = "Ada" },
    options: CallOptions(),
    demand: 1
  ) { result in
    print(result)
  }
  handle.request(10)  // Ten more results, when there is room for them.
  _ = eliza
  _ = handle
}
