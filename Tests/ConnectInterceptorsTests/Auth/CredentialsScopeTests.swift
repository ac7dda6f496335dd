import Connect
import ConnectInterceptors
import ConnectTesting
import LoopbackServer
import XCTest

/// Where tokens go, and where they never appear.
final class CredentialsScopeTests: XCTestCase {
  private func seen(
    host: String,
    for hosts: [String],
    allowsCleartext: Bool = false
  ) async throws -> [String?] {
    let provider = TokenProvider()
    let scene = TokenScene(
      provider,
      host: host,
      hosts: hosts,
      configuration: .init(allowsCleartext: allowsCleartext)
    )
    _ = try await scene.echo().get()
    return scene.seen.value
  }

  func testOnlyToItsHosts() async throws {
    let token: [String?] = ["Bearer token 1"]
    let cases: [(host: String, hosts: [String], expected: [String?])] = [
      ("https://api.test", ["api.test"], token),
      ("https://api.test:8443/base", ["other.test", "api.test"], token),
      ("https://API.test", ["Api.Test"], token),
      ("https://api.test", ["test"], [nil]),
      ("https://api.test.evil", ["api.test"], [nil]),
      ("https://evil-api.test", ["api.test"], [nil]),
      ("https://eu.api.test", ["*.api.test"], token),
      ("https://api.test", ["*.api.test"], [nil]),
      ("https://evil-api.test", ["*.api.test"], [nil]),
      ("https://api.test", [], [nil]),
      ("https://[2001:DB8::1]:8443", ["[2001:db8::1]"], token),
      ("https://[2001:db8::1]", ["2001:DB8::1"], token),
      ("unix:/run/Api.sock", ["/run/Api.sock"], token),
      ("unix:/run/other.sock", ["/run/Api.sock"], [nil]),
      ("unix-abstract:api", ["unix-abstract:api"], token),
      ("unix-abstract:api.test", ["api.test"], [nil]),
      ("unix-abstract:eu.api.test", ["*.api.test"], [nil]),
      ("unix:/eu.api.test", ["*.api.test"], [nil]),
      ("vsock:3:50051", ["3"], [nil]),
    ]
    for (host, hosts, expected) in cases {
      let seen = try await self.seen(host: host, for: hosts)
      XCTAssertEqual(seen, expected, "\(host) for \(hosts)")
    }
  }

  func testOnlyOverTLSUnlessToldOtherwise() async throws {
    let provider = TokenProvider()
    let scene = TokenScene(provider, host: "http://api.test")
    let error = await scene.echo().error
    XCTAssertEqual(error?.code, .unauthenticated)
    XCTAssertEqual(
      error?.message,
      "credentials are not sent to http://api.test, which is reached without TLS"
    )
    XCTAssertEqual(scene.seen.value, [])
    XCTAssertEqual(provider.count, 0)

    let seen = try await self.seen(host: "http://api.test", for: ["api.test"], allowsCleartext: true)
    XCTAssertEqual(seen, ["Bearer token 1"])
    let other = try await self.seen(host: "http://other.test", for: ["api.test"])
    XCTAssertEqual(other, [nil], "a host that gets no token may be reached in any way")
  }

  func testRequestSentElsewhereByAnInterceptorGoesWithout() async throws {
    let provider = TokenProvider()
    let scene = TokenScene(provider)
    let redirected = CallRedirect(to: Origin(scheme: .https, host: "elsewhere.test", port: 443))
    let credentials = scene.credentials
    let client = ProtocolClient(
      httpClient: scene.transport,
      config: ProtocolClientConfig(
        host: "https://api.test",
        interceptors: [{ _ in redirected }, { _ in CredentialsInterceptor(credentials) }]
      )
    )
    _ = try await client.unary(TestMethods.echo, .init()).get()
    XCTAssertEqual(scene.seen.value, [nil])
  }

  func testCallWithCredentialsOfItsOwn() async throws {
    let provider = TokenProvider()
    let scene = TokenScene(provider)
    scene.accepted.update { $0 = ["Basic mine"] }
    let options = CallOptions(headers: ["Authorization": ["Basic mine"]])
    _ = try await scene.echo(options: options).get()
    scene.accepted.update { $0 = [] }
    let refused = await scene.echo(options: options)
    XCTAssertEqual(refused.code, .unauthenticated)
    XCTAssertEqual(scene.seen.value, ["Basic mine", "Basic mine"])
    XCTAssertEqual(provider.count, 0)
  }

  func testCallWithoutCredentials() async throws {
    let provider = TokenProvider()
    let scene = TokenScene(provider)
    var options = CallOptions()
    options.context[WithoutCredentials.self] = true
    _ = try await scene.echo(options: options).get()
    XCTAssertEqual(scene.seen.value, [nil])
    XCTAssertEqual(provider.count, 0)
  }

  func testTokensAreInNoDescription() async throws {
    let token = AccessToken("s3cret", expiresIn: .seconds(9))
    let credentials = Credentials(for: ["api.test"], token: token) { _ in token }
    let refresh = Observed<CredentialsRefresh?>(nil)
    let scene = TokenScene(TokenProvider(), token: token)
    let fetching = Credentials(for: ["api.test"], token: AccessToken("s3cret", expiresIn: .zero)) { why in
      refresh.update { $0 = why }
      throw ConnectError(code: .unavailable, message: "\(why)")
    }
    let client = ProtocolClient(
      httpClient: scene.transport,
      config: ProtocolClientConfig(
        host: "https://api.test",
        interceptors: [{ _ in CredentialsInterceptor(fetching) }]
      )
    )
    let error = await client.unary(TestMethods.echo, .init()).error
    let texts: [Any?] = [
      token, credentials, CredentialsInterceptor(credentials), refresh.value, error, [token], ["t": token],
    ]
    for value in texts {
      var dumped = ""
      dump(value, to: &dumped)
      let text = "\(String(describing: value)) \(String(reflecting: value)) \(dumped)"
      XCTAssertFalse(text.contains("s3cret"), text)
    }
    XCTAssertEqual("\(token)", "AccessToken(redacted, expires in 9.0 seconds)")
  }
}

/// Sends calls to another host.
private final class CallRedirect: Interceptor, Sendable {
  private let origin: Origin

  init(to origin: Origin) { self.origin = origin }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { [origin] request, proceed in
        var request = request
        request.url.origin = origin
        proceed(.success(request))
      }
    )
  }
}
