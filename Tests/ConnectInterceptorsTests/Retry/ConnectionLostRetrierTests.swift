import Connect
import ConnectInterceptors
import ConnectNIO
import ConnectTesting
import LoopbackServer
import TestSupport
import XCTest

final class ConnectionLostRetrierTests: XCTestCase {
  private func attempts(
    _ retrier: ConnectionLostRetrier,
    level: IdempotencyLevel = .idempotent,
    faults: InMemoryTransport.Fault...,
    calls: Int = .max
  ) async throws -> (count: Int, code: Code, isConnectionLost: Bool) {
    let server = ScriptedServer { _, _ in }
    let log = Observed(0)
    let counting: InterceptorFactory = { _ in
      RequestInterceptor(adapters: [
        Adapter { request, _ in
          log.update { $0 += 1 }
          return request
        }
      ])
    }
    let client = server.client({ _ in RequestInterceptor(retriers: [retrier]) }, counting)
    for fault in faults { server.transport.inject(fault, calls: calls) }
    let response = try await server.call(client, idempotencyLevel: level)
    return (log.value, response.code, response.error?.isConnectionLost ?? false)
  }

  func testRetriesWhatMayBeRepeated() async throws {
    let retrier = ConnectionLostRetrier(maximumRetries: 3)
    let healed = try await self.attempts(retrier, faults: .refuseConnection, calls: 2)
    XCTAssertEqual(healed.count, 3)
    XCTAssertEqual(healed.code, .ok)
    let broken = try await self.attempts(retrier, faults: .refuseConnection)
    XCTAssertEqual(broken.count, 4)
    XCTAssertEqual(broken.code, .unavailable)
    XCTAssertTrue(broken.isConnectionLost)
    let unsafe = try await self.attempts(retrier, level: .unknown, faults: .refuseConnection)
    XCTAssertEqual(unsafe.count, 1)
  }

  func testLeavesAnswersOfTheServerAlone() async throws {
    let server = ScriptedServer(failing: .away)
    let client = server.client({ _ in RequestInterceptor(retriers: [ConnectionLostRetrier()]) })
    let response = try await server.call(client)
    XCTAssertEqual(response.code, .unavailable)
    XCTAssertEqual(response.error?.isConnectionLost, false)
    XCTAssertEqual(server.attempts.count, 1)
  }

  /// A server that goes away in the middle of its first response.
  func testOverSockets() async throws {
    let method = MethodSpec<Connect_Test_V1_EchoRequest, Connect_Test_V1_EchoRequest>(
      path: "/flaky.Service/Get",
      streamType: .unary,
      idempotencyLevel: .noSideEffects
    )
    let setting = WireSetting(.connect, over: .http1)
    let retrier = ConnectionLostRetrier(backoff: Backoff(base: .zero))
    try await SocketTest.run(over: [setting], [{ _ in RequestInterceptor(retriers: [retrier]) }]) {
      server,
      client,
      _ in
      server.onRaw(method.path) { request, responder in
        let body = try await request.body()
        guard request.attempt > 0 else {
          try await responder.sendHead(headers: [
            "content-type": "application/proto", "content-length": "100",
          ])
          try await responder.sendBody(body)
          return await responder.closeConnection()
        }
        try await responder.respond(headers: ["content-type": "application/proto"], body: body)
      }
      let message = try await client.unary(method, .text("x")).get()
      XCTAssertEqual(message.payload.text, "x")
      XCTAssertEqual(server.requests.count, 2)
    }
  }
}
