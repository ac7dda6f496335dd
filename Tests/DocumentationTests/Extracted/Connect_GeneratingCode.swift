// Extracted from Sources/Connect/Connect.docc/GeneratingCode.md by `make generate`.

import Connect

private func Connect_GeneratingCode_1() async throws {
  let client: ProtocolClient = given()
  let eliza = Connectrpc_Eliza_V1_ElizaServiceClient(client: client)

  // Throws ConnectError.
  let answer = try await eliza.say(.with { $0.sentence = "Hello" })
  // The message or the error, with metadata.
  let response = await eliza.say(request: .with { $0.sentence = "Hello" })
  // With GenerateCallbackMethods=true.
  eliza.say(request: .with { $0.sentence = "Hello" }) { response in print(response.code) }
  // A stream from the server, which throws its error.
  for try await message in eliza.introduce(.with { $0.name = "Ada" }) { print(message.sentence) }
  // With headers, trailers and cancel().
  let stream = eliza.introduce(request: .with { $0.name = "Ada" })
  _ = client
  _ = eliza
  _ = answer
  _ = response
  _ = stream
}
