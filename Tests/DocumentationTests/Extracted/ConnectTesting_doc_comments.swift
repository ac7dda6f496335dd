// Extracted from the doc comments of Sources/ConnectTesting by `make generate`.

import Connect
import ConnectChannels
import ConnectInterceptors
import ConnectLifecycle
import ConnectNIO
import ConnectProtobufC
import ConnectReflection
import ConnectSimulation
import ConnectTesting
import Logging
import NIOCore
import ServiceLifecycle
import XCTest

extension DocComments {
  private func Cassette_Messages_1() async throws {
    _ = Cassette.Configuration(messages: .of(UsersMethods.get, UsersMethods.list))
  }

  private func CassetteTransport_1() async throws {
    func testGreeting() async throws {
      let transport = try CassetteTransport(forTest: "greeting", over: NIOHTTPClient())
      addTeardownBlock { try await transport.finish() }
      let client = ProtocolClient(httpClient: transport, config: ProtocolClientConfig(host: "https://demo.connectrpc.com"))
      let response = try await client.unary(say, request).get()
      XCTAssertEqual(response.sentence, "Hello!")
    }
  }

  private func VirtualClock_1() async throws {
    let interceptor = BackoffInterceptor(clock: executor.clock)  // takes `any Clock<Duration>`
    _ = interceptor
  }

  private func VirtualExecutor_Async_1() async throws {
    let response = try await executor.lettingTimePass { await client.unary(say, request) }
    XCTAssertEqual(executor.now, .seconds(3))  // two delays, of 1 and 2 seconds
    _ = response
  }

  private func VirtualExecutor_Async_2() async throws {
    try await executor.wait { !executor.scheduled.isEmpty }
  }

  private func VirtualExecutor_1() async throws {
    let executor = VirtualExecutor()
    // … a call, with a retry after 2 seconds …
    executor.runUntilIdle()                  // the first attempt has failed, and its retry is scheduled
    XCTAssertEqual(executor.scheduled, [.seconds(2)])
    executor.advance(by: .seconds(2))
    _ = executor
  }

  private func ExplorerAnswer_1() async throws {
    let server = ExplorerServer.answering { attempt in
      attempt.headers["authorization"] == ["Bearer new"] ? [.ok, .unavailable] : [.unauthenticated]
    }
    _ = server
  }

  private func ExplorerWorld_1() async throws {
    let store = TokenStore {
      try await world.step("token endpoint")
      return world.token()
    }
    _ = store
  }

  private func InterceptorExplorer_1() async throws {
    func testTokenInterceptor() async throws {
      try await InterceptorExplorer { world in
        let store = TokenStore {
          try await world.step("token endpoint")
          return world.token()
        }
        return Subject(observing: store) { _ in TokenInterceptor(store: store) }
      }
      .calls(2)
      .server(.answers(.ok, .unauthenticated, .unavailable))
      .check("one refresh") { run in run.subject.refreshes <= 1 }
      .explore()
    }
  }

  private func InterceptorDriver_1() async throws {
    let driver = InterceptorDriver { TokenInterceptor(config: $0) }
    let outcome = try await driver.unary.request(driver.makeRequest(message: ByteBuffer())).outcome
    XCTAssertEqual(outcome.request?.headers["authorization"], ["Bearer t0"])
    _ = driver
    _ = outcome
  }

  private func InterceptorProbe_1() async throws {
    let probe = InterceptorProbe()
    config.interceptors = [probe.factory("outside"), { MyInterceptor(config: $0) }, probe.factory("inside")]
    // … a call …
    XCTAssertEqual(
      probe.events.filter { $0.level == .message }.transcript,
      """
      outside message request: hello
      inside message request: hello, I said
      inside message response unavailable: try later
      outside message response ok: from the cache
      """
    )
    _ = probe
  }

  private func ScriptedInterceptor_1() async throws {
    config.interceptors = [
      ScriptedInterceptor.factory(.retry(2, after: .seconds(1))),
      ScriptedInterceptor.factory(.fail(ConnectError(code: .unavailable), attempts: 2)),
    ]
  }

  private func StreamHookDriver_1() async throws {
    let headers = driver.stream.result(.headers(["etag": ["1"]]))
    XCTAssertTrue(headers.verbs.isEmpty)  // held back
    let message = driver.stream.result(.message(bytes))
    let passedOn = try await headers.outcome.result
    XCTAssertNotNil(passedOn)
    _ = headers
    _ = message
    _ = passedOn
  }

  private func MockService_1() async throws {
    let service = MockService()
    let say = service.unary(ElizaMethods.say)
    say.answer(.message(.with { $0.sentence = "Hello" }))
    let response = await service.client.unary(ElizaMethods.say, request)
    _ = service
    _ = say
    _ = response
  }

  private func InMemoryTransport_Servers_1() async throws {
    transport.refuseConnections(at: server)  // The server stops:
    transport.goAway(at: server)             // in order, or
    transport.disconnect(at: server)         // as one that is killed.
    // …
    transport.acceptConnections(at: server)  // It is back.
  }

  private func InMemoryTransport_1() async throws {
    let transport = InMemoryTransport()
    transport.onUnary(say) { request, context in
      context.responseHeaders["x-served-by"] = ["memory"]
      return .with { $0.sentence = "You said \(request.sentence)" }
    }
    let client = ProtocolClient(httpClient: transport, config: ProtocolClientConfig(host: "http://memory"))
    _ = transport
    _ = client
  }
}
