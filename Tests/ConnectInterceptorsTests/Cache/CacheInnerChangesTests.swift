import Connect
import ConnectInterceptors
import ConnectTesting
import LoopbackServer
import SwiftProtobuf
import XCTest

/// What interceptors that are listed behind the cache, such as those of one call, make of a request.
final class CacheInnerChangesTests: XCTestCase {
  private func scene(_ configuration: ResponseCache.Configuration = .defaults) -> CacheScene {
    let scene = CacheScene(configuration)
    scene.transport.onUnary(TestMethods.lookup) { _, context in
      scene.requests.update { $0.append(context.request) }
      return .with { $0.value = context.requestHeaders.first("authorization") ?? "nobody" }
    }
    return scene
  }

  private func lookup(
    _ scene: CacheScene,
    _ options: CallOptions,
    _ interceptor: @escaping InterceptorFactory
  ) async throws -> String {
    var options = options
    options.interceptors = [interceptor]
    return try await scene.client.unary(TestMethods.lookup, .with { $0.key = "k" }, options: options).get()
      .value
  }

  private func credentials(_ name: String) -> InterceptorFactory {
    let credentials = Credentials(for: ["api.test"], token: AccessToken(name)) { _ in AccessToken(name) }
    return { _ in CredentialsInterceptor(credentials) }
  }

  private func adapter(_ name: String) -> InterceptorFactory {
    let adapter = Adapter { request, _ in
      var request = request
      request.headers["authorization"] = ["Bearer \(name)"]
      return request
    }
    return { _ in RequestInterceptor(adapters: [adapter]) }
  }

  func testCredentialsOfOneCallKeepItsResponseToThatUser() async throws {
    for (policy, count) in [(nil, 3), (.networkFirst, 4), (.networkOnly, 4)] as [(CachePolicy?, Int)] {
      let scene = self.scene()
      for name in ["ada", "bob", "ada"] {
        let value = try await self.lookup(scene, .cached(policy), self.credentials(name))
        XCTAssertEqual(value, "Bearer \(name)", "\(String(describing: policy))")
      }
      let other = try await scene.value()
      XCTAssertEqual(other, "nobody")
      XCTAssertEqual(scene.requestCount, count)
    }
  }

  func testAdaptersOfOneCallKeepItsResponseToThatUser() async throws {
    let scene = self.scene()
    for name in ["ada", "bob", "ada"] {
      let value = try await self.lookup(scene, CallOptions(), self.adapter(name))
      XCTAssertEqual(value, "Bearer \(name)")
    }
    let other = try await scene.value()
    XCTAssertEqual(other, "nobody")
  }

  /// Says that it does not depend on the user, and gives each tenant another host.
  private struct TenantHost: Interceptor {
    let name: String

    func unaryFunction() -> UnaryFunction {
      UnaryFunction(requestFunction: { request, proceed in
        var request = request
        request.authority = self.name
        proceed(.success(request))
      })
      .placed(.userIndependent)
    }
  }

  func testAuthoritiesOfOneCallKeepItsResponseToThatHost() async throws {
    let scene = self.scene()
    scene.transport.onUnary(TestMethods.lookup) { _, context in
      scene.requests.update { $0.append(context.request) }
      return .with { $0.value = context.request.authority ?? "none" }
    }
    for name in ["a.test", "b.test", "a.test"] {
      let value = try await self.lookup(scene, CallOptions()) { _ in TenantHost(name: name) }
      XCTAssertEqual(value, name)
    }
    XCTAssertEqual(scene.requestCount, 3)
    // Nor do calls in flight share it.
    let names = ["c.test", "d.test", "e.test"]
    let calls = LookupCalls()
    for name in names {
      var options = CallOptions()
      options.interceptors = [{ _ in TenantHost(name: name) }]
      calls.start(scene.client, "k", options)
    }
    scene.executor.runUntilIdle()
    let values = await calls.wait()
    XCTAssertEqual(values, names)
    let other = try await scene.value()
    XCTAssertEqual(other, "none")
  }

  /// What the key leaves out does not matter, and a partition says whose the response is.
  func testChangesThatTheKeyDoesNotKnow() async throws {
    let scene = self.scene()
    let adapter = Adapter { request, _ in
      var request = request
      request.headers["traceparent"] = ["1"]
      return request
    }
    for _ in 0..<2 {
      _ = try await self.lookup(scene, CallOptions()) { _ in RequestInterceptor(adapters: [adapter]) }
    }
    XCTAssertEqual(scene.requestCount, 1)
    for _ in 0..<2 {
      let value = try await self.lookup(scene, .cached(partition: "ada"), self.credentials("ada"))
      XCTAssertEqual(value, "Bearer ada")
    }
    XCTAssertEqual(scene.requestCount, 2)
  }

  /// A call that an interceptor inside makes is another call, though it inherits the context.
  func testCallsOfInnerInterceptors() async throws {
    let scene = self.scene()
    let count = Observed(0)
    scene.transport.onUnary(TestMethods.echo) { _, _ in
      count.update { $0 += 1 }
      return .init()
    }
    let personal: [InterceptorFactory] = [
      self.credentials("ada"), self.adapter("ada"), { _ in CacheReadInterceptor(scene.cache) },
      { _ in CacheWriteInterceptor(scene.cache) },
    ]
    let nested = ProtocolClient(
      httpClient: scene.transport,
      config: ProtocolClientConfig(host: "https://api.test", interceptors: personal)
    )
    let asking = Adapter { request, _ in
      _ = try await nested.unary(TestMethods.echo, .init()).get()
      return request
    }
    for _ in 0..<2 {
      _ = try await CallContext.withValues {
        $0.requestID = "1"
      } operation: {
        try await self.lookup(scene, CallOptions()) { _ in RequestInterceptor(adapters: [asking]) }
      }
    }
    // Adapters run before the cache is asked.
    XCTAssertEqual(count.value, 2)
    XCTAssertEqual(scene.requestCount, 1)
  }

  /// Two caches, and credentials listed behind both.
  func testTwoCaches() async throws {
    let scene = self.scene()
    let inner = ResponseCache(clock: scene.executor.clock)
    for name in ["ada", "bob"] {
      var options = CallOptions()
      options.interceptors = [
        { _ in CacheReadInterceptor(inner) }, { _ in CacheWriteInterceptor(inner) }, self.credentials(name),
      ]
      let value = try await scene.client.unary(TestMethods.lookup, .with { $0.key = "k" }, options: options)
        .get().value
      XCTAssertEqual(value, "Bearer \(name)")
    }
  }
}
