import Connect
import ConnectInterceptors
import ConnectTesting
import LoopbackServer
import SwiftProtobuf
import XCTest

/// The examples of the article "Credentials", in use.
final class CredentialsExampleTests: XCTestCase {
  func testCredentials() async throws {
    let transport = InMemoryTransport()
    transport.onUnary(TestMethods.lookup) { _, _ in .with { $0.value = "t0k3n" } }
    transport.onUnary(TestMethods.echo) { _, context in
      .with { $0.payload.text = context.requestHeaders.first("authorization") ?? "nobody" }
    }
    let login = Connect_Test_V1_TestServiceClient(
      client: ProtocolClient(
        httpClient: transport,
        config: ProtocolClientConfig(host: "https://api.example.com")
      )
    )

    let credentials = Credentials(for: ["api.example.com"]) { _ in
      let response = try await login.lookup(.with { $0.key = "token" })
      return AccessToken(response.value, expiresIn: .seconds(3600))
    }
    let config = ProtocolClientConfig(
      host: "https://api.example.com",
      interceptors: [{ _ in CredentialsInterceptor(credentials) }]
    )

    let client = ProtocolClient(httpClient: transport, config: config)
    let response = try await client.unary(TestMethods.echo, .init()).get()
    XCTAssertEqual(response.payload.text, "Bearer t0k3n")
  }
}
