import Connect
import ConnectInterceptors
import ConnectTesting
import XCTest

/// A ``RetryBudget`` for calls that hedge.
final class HedgingBudgetTests: XCTestCase {
  private func options(_ budget: RetryBudget, maximumAttempts: Int = 3) -> CallOptions {
    var options = CallOptions()
    options.hedging = HedgingPolicy(maximumAttempts: maximumAttempts, delay: .seconds(1), budget: budget)
    return options
  }

  private func call(
    _ server: ScriptedServer,
    _ options: CallOptions,
    _ interceptors: InterceptorFactory...
  ) async throws -> Code {
    let client = interceptors.first.map { server.client($0) } ?? server.client()
    return try await server.call(client, idempotencyLevel: .noSideEffects, options: options).code
  }

  func testHedgesAndRetriesSpendTheSameTokens() async throws {
    let server = ScriptedServer { _, _ in throw ConnectError.away }
    let budget = RetryBudget(maximumTokens: 10)
    let code = try await self.call(server, self.options(budget))
    XCTAssertEqual(code, .unavailable)
    XCTAssertEqual(server.attempts.count, 3)
    XCTAssertEqual(budget.tokens, 7)
    // One retry is left for another call: then half of the tokens are gone.
    let policy = RetryPolicy(backoff: Backoff(base: .zero))
    _ = try await self.call(server, CallOptions(), { _ in RetryInterceptor(policy: policy, budget: budget) })
    XCTAssertEqual(server.attempts.count, 5)
    XCTAssertEqual(budget.tokens, 5)
    // And no hedge for the next.
    _ = try await self.call(server, self.options(budget))
    XCTAssertEqual(server.attempts.count, 6)
    XCTAssertEqual(budget.tokens, 4)
  }

  func testASlowCallIsNotHedgedWithoutTokens() async throws {
    for (failures, attempts) in [(4, 2), (5, 1)] {
      let server = ScriptedServer { _, context in try await context.sleep(for: .milliseconds(1500)) }
      let budget = RetryBudget(maximumTokens: 10, tokenRatio: 0.5)
      for _ in 0..<failures { budget.recordFailure() }
      let code = try await self.call(server, self.options(budget))
      XCTAssertEqual(code, .ok)
      XCTAssertEqual(server.attempts.count, attempts)
      // The winner alone has counted.
      XCTAssertEqual(budget.tokens, 10 - Double(failures) + 0.5)
    }
  }

  func testPushback() async throws {
    for (pushback, times, tokens) in [
      ("5000", [Duration.zero, .seconds(5)], 9.1), ("-1", [.zero], 9), ("soon", [.zero], 9),
    ] {
      let server = ScriptedServer { number, _ in
        if number == 1 { throw ConnectError.away(["grpc-retry-pushback-ms": [pushback]]) }
      }
      let budget = RetryBudget(maximumTokens: 10)
      let code = try await self.call(server, self.options(budget))
      XCTAssertEqual(code, times.count == 1 ? .unavailable : .ok, pushback)
      XCTAssertEqual(server.attempts.map(\.time), times, pushback)
      XCTAssertEqual(budget.tokens, tokens, accuracy: 0.001, pushback)
    }
  }

  /// The server's word takes a token also from a call whose error is its outcome.
  func testPushbackOfAFinalError() async throws {
    let error = ConnectError(code: .notFound, metadata: ["grpc-retry-pushback-ms": ["-1"]])
    let server = ScriptedServer(failing: error)
    let budget = RetryBudget(maximumTokens: 10)
    let code = try await self.call(server, self.options(budget))
    XCTAssertEqual(code, .notFound)
    XCTAssertEqual(budget.tokens, 9)
  }

  /// With both for the same call, the outcome of the hedged attempt counts once more.
  func testHedgesInsideOfRetries() async throws {
    let server = ScriptedServer { _, _ in throw ConnectError.away }
    let budget = RetryBudget(maximumTokens: 100)
    let policy = RetryPolicy(maximumAttempts: 2, backoff: Backoff(base: .zero))
    _ = try await self.call(
      server,
      self.options(budget, maximumAttempts: 2),
      { _ in RetryInterceptor(policy: policy, budget: budget) }
    )
    // Two, and one after the retry, which has no hedge left: each outcome once more.
    XCTAssertEqual(server.attempts.count, 3)
    XCTAssertEqual(budget.tokens, 95)
  }
}
