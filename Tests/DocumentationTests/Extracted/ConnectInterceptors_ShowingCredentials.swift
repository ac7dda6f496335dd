// Extracted from Sources/ConnectInterceptors/ConnectInterceptors.docc/ShowingCredentials.md by `make generate`.

import Connect
import ConnectInterceptors

private func ConnectInterceptors_ShowingCredentials_1() async throws {
  let login: ProtocolClient = given()
  let credentials = Credentials(for: ["api.example.com"]) { _ in
    let eliza = Connectrpc_Eliza_V1_ElizaServiceClient(client: login)
    let response = try await eliza.say(.with { $0.sentence = "my token, please" })
    return AccessToken(response.sentence, expiresIn: .seconds(3600))
  }
  let config = ProtocolClientConfig(
    host: "https://api.example.com",
    interceptors: [{ _ in CredentialsInterceptor(credentials) }]
  )
  _ = login
  _ = credentials
  _ = config
}
