import Connect
import ConnectInterceptors
import ConnectNIO
import ConnectTesting
import Logging
import LoopbackServer
import NIOCore
import SwiftProtobuf
import XCTest

/// What tells users apart, and who says that it does not matter.
final class CacheIdentityTests: XCTestCase {
  private static let request = LookupRequest.with { $0.key = "k" }

  /// Says who the user is, as users write it.
  private struct OwnAuth: Interceptor {
    var header = "authorization"
    var placement = HookPlacement.asListed

    func unaryFunction() -> UnaryFunction {
      UnaryFunction(
        requestFunction: { request, proceed in
          var request = request
          if let user = request.context[CurrentUser.self] { request.headers[self.header] = [user] }
          proceed(.success(request))
        }
      )
      .placed(self.placement)
    }
  }

  /// A client of a server that answers with the user, and what makes a call.
  private func lookup(
    _ configuration: ResponseCache.Configuration = .defaults,
    responseHeaders: Headers = [:],
    count: Observed<Int> = Observed(0),
    _ interceptors: (ResponseCache) -> [InterceptorFactory]
  ) -> (@Sendable (String?) async -> String) {
    let transport = InMemoryTransport(executor: VirtualExecutor())
    transport.onUnary(TestMethods.lookup) { _, context in
      count.update { $0 += 1 }
      context.responseHeaders.append(contentsOf: responseHeaders)
      let names = ["authorization", "cookie", "x-user", "baggage"]
      return .with { $0.value = names.compactMap { context.requestHeaders.first($0) }.first ?? "nobody" }
    }
    let cache = ResponseCache(configuration: configuration)
    let config = ProtocolClientConfig(host: "https://api.test", interceptors: interceptors(cache))
    let client = ProtocolClient(httpClient: transport, config: config)
    return { user in
      var options = CallOptions()
      options.context[CurrentUser.self] = user
      let response = await client.unary(TestMethods.lookup, Self.request, options: options)
      return response.message?.value ?? "\(response.code)"
    }
  }

  private func bare(_ cache: ResponseCache, _ own: OwnAuth) -> [InterceptorFactory] {
    [{ _ in CacheReadInterceptor(cache) }, { _ in CacheWriteInterceptor(cache) }, { _ in own }]
  }

  func testOwnAuthBehindTheRecommendedInterceptors() async {
    let count = Observed(0)
    let lookup = self.lookup(count: count) { cache in
      var parts = ClientParts(logger: Logger(label: "", factory: { _ in SwiftLogNoOpLogHandler() }))
      parts.cache = cache
      return .recommended(for: parts) + [{ _ in OwnAuth() }]
    }
    var values: [String] = []
    for user in [nil, "ada", "bob", nil, "ada", "bob"] { values.append(await lookup(user)) }
    XCTAssertEqual(values, ["nobody", "ada", "bob", "nobody", "ada", "bob"])
    XCTAssertEqual(count.value, 3)
  }

  /// One that says that it does not depend on the user, and does: what it brings is neither stored nor shared.
  func testHooksThatAreNotWhatTheySay() async {
    let count = Observed(0)
    let lookup = self.lookup(count: count) {
      self.bare($0, OwnAuth(header: "x-user", placement: .userIndependent))
    }
    var values: [String] = []
    for user in ["ada", "bob", "ada"] { values.append(await lookup(user)) }
    XCTAssertEqual(values, ["ada", "bob", "ada"])
    XCTAssertEqual(count.value, 3)
    let concurrent = await withTaskGroup(of: Bool.self) { group in
      for user in ["ada", "bob", "cleo"] { group.addTask { await lookup(user) == user } }
      return await group.reduce(into: []) { $0.append($1) }
    }
    XCTAssertEqual(concurrent, [true, true, true])
  }

  func testCredentialsThatAreNoPartOfTheKey() async {
    for keyHeaders in [ResponseCache.KeyHeaders.only([]), .all(except: ["Authorization", "cookie"])] {
      for header in ["authorization", "cookie"] {
        let (count, sharedCount) = (Observed(0), Observed(0))
        let own = OwnAuth(header: header)
        let lookup = self.lookup(.init(keyHeaders: keyHeaders), count: count) { self.bare($0, own) }
        let shared = self.lookup(
          .init(keyHeaders: keyHeaders, sharesResponsesBetweenUsers: true),
          count: sharedCount
        ) { self.bare($0, own) }
        for user in ["ada", "bob", "ada"] {
          let value = await lookup(user)
          XCTAssertEqual(value, user)
          let sharedValue = await shared(user)
          XCTAssertEqual(sharedValue, "ada")
        }
        XCTAssertEqual(count.value, 3)
        XCTAssertEqual(sharedCount.value, 1)
      }
    }
  }

  func testSharingBetweenUsers() async {
    for (headers, expected) in [
      ([:], ["ada", "ada"]), (["set-cookie": ["session=1"]], ["ada", "bob"]),
      (["cache-control": ["private"]], ["ada", "bob"]),
    ] as [(Headers, [String])] {
      let lookup = self.lookup(.init(sharesResponsesBetweenUsers: true), responseHeaders: headers) {
        self.bare($0, OwnAuth())
      }
      let values = [await lookup("ada"), await lookup("bob")]
      XCTAssertEqual(values, expected)
    }
  }

  func testBaggageMayNameTheUser() async {
    let lookup = self.lookup { self.bare($0, OwnAuth(header: "baggage")) }
    let values = [await lookup("user=ada"), await lookup("user=bob")]
    XCTAssertEqual(values, ["user=ada", "user=bob"])
  }

  /// A response that sets a cookie, or is private, belongs to the one caller that has asked for it, if the key does not
  /// say who that is.
  func testCookiesAndPrivateResponsesAreNotShared() async throws {
    for headers in [["set-cookie": ["session=1"]], ["cache-control": ["private"]]] as [Headers] {
      let scene = CacheScene()
      scene.headers.update { $0 = headers }
      scene.isOpen.update { $0 = false }
      let calls = scene.start(3)
      scene.isOpen.update { $0 = true }
      let values = await calls.wait()
      XCTAssertEqual(Set(values).count, 3, "\(headers)")
      let later = try await scene.value()
      XCTAssertEqual(later, "k 4", "\(headers)")
      for _ in 0..<2 {
        let own = try await scene.value(headers: ["authorization": ["ada"]])
        XCTAssertEqual(own, "k 5", "\(headers)")
      }
    }
  }

  func testRequestsWithTrailersPassTheCacheBy() async {
    struct Trailers: Interceptor {
      func unaryFunction() -> UnaryFunction {
        UnaryFunction(updateRequest: { request in request.trailers["x-user"] = ["ada"] })
      }
    }
    let count = Observed(0)
    let lookup = self.lookup(count: count) { self.bare($0, OwnAuth()) + [{ _ in Trailers() }] }
    for _ in 0..<2 { _ = await lookup(nil) }
    XCTAssertEqual(count.value, 2)
  }

  // MARK: Transports

  /// A transport of the user's own, which may say to servers who the client is.
  private struct Wrapped: HTTPClientInterface {
    let base: InMemoryTransport

    func endpoint(
      for origin: Origin,
      on executor: (any CallExecutor)?,
      requiresHTTP2: Bool
    ) throws(ConnectError) -> any HTTPEndpoint {
      try self.base.endpoint(for: origin, on: executor, requiresHTTP2: requiresHTTP2)
    }
  }

  func testClientsThatTheirTransportAuthenticatesShareNothing() async throws {
    for isWrapped in [true, false] {
      for shares in [false, true] {
        let cache = ResponseCache(configuration: .init(sharesResponsesBetweenUsers: shares))
        var values: [String] = []
        let clients = ["ada", "bob"].map { name in
          let transport = InMemoryTransport(executor: VirtualExecutor())
          transport.onUnary(TestMethods.lookup) { _, _ in .with { $0.value = name } }
          return ProtocolClient(
            httpClient: isWrapped ? Wrapped(base: transport) : transport,
            config: ProtocolClientConfig(
              host: "https://api.test",
              interceptors: [{ _ in CacheReadInterceptor(cache) }, { _ in CacheWriteInterceptor(cache) }]
            )
          )
        }
        for client in clients + clients {
          values.append(try await client.unary(TestMethods.lookup, Self.request).get().value)
        }
        let expected = isWrapped && !shares ? ["ada", "bob", "ada", "bob"] : ["ada", "ada", "ada", "ada"]
        XCTAssertEqual(values, expected, "\(isWrapped) \(shares)")
        XCTAssertEqual(clients.map { $0.clientIdentity != nil }, [isWrapped, isWrapped])
      }
    }
  }

  func testAClientCertificateAuthenticates() async {
    let certificate = NIOHTTPClient.Configuration.TLS.ClientCertificate.pemFiles(chain: "c", privateKey: "k")
    for (tls, expected) in [(.defaults, false), (.init(clientCertificate: certificate), true)]
      as [(NIOHTTPClient.Configuration.TLS, Bool)]
    {
      let httpClient = NIOHTTPClient(configuration: NIOHTTPClient.Configuration(tls: tls))
      XCTAssertEqual(httpClient.authenticatesClient, expected)
      await httpClient.shutdown()
    }
  }
}
