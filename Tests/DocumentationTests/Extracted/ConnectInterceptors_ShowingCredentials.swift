// Extracted from Sources/ConnectInterceptors/ConnectInterceptors.docc/ShowingCredentials.md by `make generate`.

import Connect
import ConnectInterceptors

struct Renewed {
  let token: String
  let refreshToken: String?
}

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

private func ConnectInterceptors_ShowingCredentials_2() async throws {
  let credentials = Credentials.file("/var/run/secrets/tokens/orders", for: ["orders.example.com"])
  let config = ProtocolClientConfig(
    host: "https://orders.example.com",
    interceptors: [{ _ in CredentialsInterceptor(credentials) }]
  )
  _ = credentials
  _ = config
}

private func ConnectInterceptors_ShowingCredentials_3() async throws {
  let renew: @Sendable (String?) async throws -> Renewed = given()
  let store = FileCredentialStore(path: "/home/ada/.config/tool/credentials.json")
  let credentials = Credentials(for: ["api.example.com"], store: store) { refresh in
    guard let old = refresh.previous?.refreshToken else {
      throw ConnectError(code: .unauthenticated, message: "log in first: tool login")
    }
    let response = try await renew(old)
    return AccessToken(response.token, refreshToken: response.refreshToken ?? old, expiresIn: .seconds(3600))
  }
  _ = renew
  _ = store
  _ = credentials
}
