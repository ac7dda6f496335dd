import Connect
import ConnectInterceptors
import ConnectTesting
import XCTest

final class MaximumRetriesInterceptorTests: XCTestCase {
  private static func always(_ code: Code = .unavailable) -> InterceptorFactory {
    { _ in RequestInterceptor(retriers: [Retrier { _ in .retry }]) }
  }

  private func server() -> ScriptedServer {
    ScriptedServer { number, _ in throw ConnectError(code: .unavailable, message: "attempt \(number)") }
  }

  func testInsideItReportsTheLastError() async throws {
    let budget = RetryBudget(maximumTokens: 100)
    let retrying: InterceptorFactory = { _ in
      RetryInterceptor(policy: RetryPolicy(maximumAttempts: 10), budget: budget)
    }
    for maximum in 0...3 {
      let server = self.server()
      let client = server.client(retrying, { _ in MaximumRetriesInterceptor(maximum) })
      let response = try await server.call(client)
      XCTAssertEqual(response.error?.message, "attempt \(maximum + 1)")
      XCTAssertEqual(server.attempts.count, maximum + 1)
      let stream = try await server.stream(client)
      XCTAssertEqual(stream.error?.message, "attempt \(2 * maximum + 2)")
      XCTAssertEqual(server.attempts.count, 2 * maximum + 2)
    }
  }

  func testOutsideItHasAnErrorOfItsOwn() async throws {
    let budget = RetryBudget(maximumTokens: 100)
    let retrying: [InterceptorFactory] = [
      Self.always(),
      { _ in RetryInterceptor(policy: RetryPolicy(maximumAttempts: 10), budget: budget) },
    ]
    for retrying in retrying {
      let server = self.server()
      let client = server.client({ _ in MaximumRetriesInterceptor(1) }, retrying)
      let response = try await server.call(client)
      XCTAssertEqual(response.code, .resourceExhausted)
      XCTAssertEqual((response.error?.exception as? ConnectError)?.message, "attempt 2")
      XCTAssertEqual(server.attempts.count, 2)
      let stream = try await server.stream(client)
      XCTAssertEqual(stream.code, .resourceExhausted)
      XCTAssertEqual((stream.error?.exception as? ConnectError)?.message, "attempt 4")
    }
  }

  func testPerCall() async throws {
    let server = ScriptedServer(failing: .away, .away)
    let client = server.client(Self.always())
    let options = CallOptions(interceptors: [{ _ in MaximumRetriesInterceptor(2) }])
    let response = try await server.call(client, options: options)
    XCTAssertEqual(response.code, .ok)
  }
}
