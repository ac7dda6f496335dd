import Connect
import ConnectInterceptors
import ConnectTesting
import LoopbackServer
import SwiftProtobuf
import XCTest

/// Virtual hosts of a server, which calls ask for by their authority, are hosts of their own.
final class AuthorityScopeTests: XCTestCase {
  private func scene(
    host: String = "https://api.test",
    _ interceptors: InterceptorFactory...
  ) -> (InMemoryTransport, ProtocolClient) {
    let transport = InMemoryTransport(executor: VirtualExecutor())
    let config = ProtocolClientConfig(host: host, interceptors: interceptors)
    return (transport, ProtocolClient(httpClient: transport, config: config))
  }

  func testCache() async throws {
    let cache = ResponseCache()
    let (transport, client) = self.scene(
      { _ in CacheReadInterceptor(cache) },
      { _ in CacheWriteInterceptor(cache) }
    )
    let method = MethodSpec<Connect_Test_V1_EchoRequest, Connect_Test_V1_EchoResponse>(
      path: "/a.B/Read",
      streamType: .unary,
      idempotencyLevel: .noSideEffects
    )
    let count = Observed(0)
    transport.onUnary(method) { _, context in
      count.update { $0 += 1 }
      return .with { $0.payload.text = context.request.authority ?? "none" }
    }
    for _ in 0..<2 {
      for authority in [nil, "one.test", "two.test", "ONE.test"] {
        let response = try await client.unary(method, .init(), options: CallOptions(authority: authority))
          .get()
        XCTAssertEqual(response.payload.text.lowercased(), authority?.lowercased() ?? "none")
      }
    }
    XCTAssertEqual(count.value, 3)
  }

  func testCookies() async throws {
    for host in ["https://api.test", "unix:/run/api.sock"] {
      let jar = CookieJar()
      let (transport, client) = self.scene(host: host, { _ in CookieInterceptor(jar) })
      let seen = Observed<[String]>([])
      transport.onUnary(TestMethods.echo) { _, context in
        let host = context.request.authority ?? "none"
        seen.update { $0.append("\(host): \(context.requestHeaders["cookie"].joined())") }
        context.responseHeaders.add(name: "set-cookie", value: "from=\(host); Path=/")
        return .init()
      }
      for authority in [nil, "one.test", "two.test", "one.test", nil] {
        _ = try await client.unary(TestMethods.echo, .init(), options: CallOptions(authority: authority))
          .get()
      }
      XCTAssertEqual(
        seen.value,
        ["none: ", "one.test: ", "two.test: ", "one.test: from=one.test", "none: from=none"]
      )
    }
  }

  func testCredentials() async throws {
    let credentials = Credentials(for: ["api.test", "*.one.test"], token: AccessToken("secret")) { _ in
      throw ConnectError(code: .unavailable)
    }
    let (transport, client) = self.scene({ _ in CredentialsInterceptor(credentials) })
    let seen = Observed<[String]>([])
    transport.onUnary(TestMethods.echo) { _, context in
      seen.update { $0.append(context.requestHeaders["authorization"].joined()) }
      return .init()
    }
    for authority in [nil, "api.test:8443", "eu.one.test", "one.test", "other.test"] {
      _ = try await client.unary(TestMethods.echo, .init(), options: CallOptions(authority: authority)).get()
    }
    XCTAssertEqual(seen.value, ["Bearer secret", "Bearer secret", "Bearer secret", "", ""])
  }
}
