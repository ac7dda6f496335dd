// Extracted from Sources/Connect/Connect.docc/Connect.md by `make generate`.

import Connect
import ConnectNIO

private func Connect_Connect_1() async throws {
  let httpClient = NIOHTTPClient()
  let client = ProtocolClient(
    httpClient: httpClient,
    config: ProtocolClientConfig(host: "https://demo.connectrpc.com", timeout: .seconds(10))
  )
  let eliza = Connectrpc_Eliza_V1_ElizaServiceClient(client: client)
  let answer = try await eliza.say(.with { $0.sentence = "Hello" })
  _ = httpClient
  _ = client
  _ = eliza
  _ = answer
}
