import Connect
import ConnectInterceptors
import ConnectTesting
import XCTest

/// A `RetryBudget` for calls that `RetryInterceptor` makes again.
final class BudgetedRetryTests: XCTestCase {
  /// Failures of calls that are not made again count, too; errors that say nothing about the server do not.
  func testWhatCounts() async throws {
    for (error, level, tokens) in [
      (ConnectError.away, IdempotencyLevel.unknown, 9.0),
      (ConnectError(code: .notFound), .idempotent, 10),
      (ConnectError(code: .notFound, metadata: ["grpc-retry-pushback-ms": ["-1"]]), .idempotent, 9),
    ] {
      let server = ScriptedServer(failing: error)
      let budget = RetryBudget()
      let client = server.client({ _ in RetryInterceptor(budget: budget) })
      let response = try await server.call(client, idempotencyLevel: level)
      XCTAssertEqual(response.code, error.code)
      XCTAssertEqual(server.attempts.count, 1)
      XCTAssertEqual(budget.tokens, tokens, "\(error)")
    }
  }

  /// What a guard has refused was no attempt.
  func testWhatWasNotSentDoesNotCount() async throws {
    for guarded in ["breaker", "retries"] {
      let server = ScriptedServer { _, _ in throw ConnectError.away }
      let budget = RetryBudget()
      let breaker = CircuitBreaker(
        .init(minimumCalls: guarded == "breaker" ? 1 : 2),
        clock: server.executor.clock
      )
      let client = server.client(
        { _ in RetryInterceptor(budget: budget) },
        { _ in CircuitBreakerInterceptor(breaker) },
        { _ in MaximumRetriesInterceptor(guarded == "retries" ? 0 : 10) }
      )
      let response = try await server.call(client)
      XCTAssertEqual(response.code, .unavailable)
      XCTAssertEqual(budget.tokens, 9, guarded)
      let refused = try await server.call(client)
      XCTAssertEqual(refused.code, .unavailable)
      // The attempt of the second call counts where it was made: for the breaker, too, which opens with it.
      XCTAssertEqual(server.attempts.count, guarded == "breaker" ? 1 : 2)
      XCTAssertEqual(budget.tokens, guarded == "breaker" ? 9 : 8, guarded)
    }
  }

  /// What a cache answers says nothing about the server.
  func testWhatNoServerAnsweredDoesNotCount() async throws {
    struct Answering: Interceptor {
      func unaryFunction() -> UnaryFunction {
        UnaryFunction(requestFunction: { request, proceed in
          if request.headers.contains("x-known") {
            proceed.answer(HTTPResponse())
          } else {
            proceed(.success(request))
          }
        })
      }
    }
    let server = ScriptedServer { number, _ in if number == 1 { throw ConnectError(code: .unavailable) } }
    let budget = RetryBudget()
    let client = server.client({ _ in RetryInterceptor(budget: budget) }, { _ in Answering() })
    let response = try await server.call(client)
    XCTAssertNil(response.error)
    XCTAssertEqual(budget.tokens, 9.1, accuracy: 0.001)
    for _ in 0..<5 {
      let known = try await server.call(client, options: CallOptions(headers: ["x-known": ["1"]]))
      XCTAssertNil(known.error)
    }
    XCTAssertEqual(server.attempts.count, 2)
    XCTAssertEqual(budget.tokens, 9.1, accuracy: 0.001)
  }

  // MARK: Simulation

  /// Calls at a steady rate to a server that fails some of them, and how many attempts it sees in each second.
  private func simulate(
    callsPerSecond rate: Int,
    seconds: Int,
    fails: @escaping @Sendable (Duration, Int) -> Bool
  ) -> (calls: Int, attempts: [Int]) {
    let clock = Observed<VirtualExecutor?>(nil)
    let server = ScriptedServer { number, _ in
      if fails(clock.value?.now ?? .zero, number) { throw ConnectError.away }
    }
    clock.update { $0 = server.executor }
    let budget = RetryBudget()
    let client = server.client(timeout: .seconds(30), { _ in RetryInterceptor(budget: budget) })
    for _ in 0..<(rate * seconds) {
      client.unary(ScriptedServer.method(), .text("x")) { _ in }
      server.executor.advance(by: .seconds(1) / rate)
    }
    server.executor.advance(by: .seconds(60))
    var attempts = [Int](repeating: 0, count: seconds)
    for attempt in server.attempts {
      attempts[min(Int(attempt.time.components.seconds), seconds - 1)] += 1
    }
    return (rate * seconds, attempts)
  }

  /// Under a server that fails everything, retries add at most 10 % after the first second.
  func testAnOutageIsNotAmplified() {
    for rate in [5, 20, 100, 500] {
      let (calls, attempts) = self.simulate(callsPerSecond: rate, seconds: 5) { _, _ in true }
      XCTAssertEqual(calls, rate * 5)
      for second in attempts.dropFirst() {
        XCTAssertLessThanOrEqual(Double(second), Double(rate) * 1.1, "\(rate) calls per second: \(attempts)")
      }
      XCTAssertLessThanOrEqual(attempts[0], rate + 5)
    }
  }

  func testRetriesComeBackWithTheServer() {
    // Away in the second second, then back, but for every twentieth attempt.
    let (_, attempts) = self.simulate(callsPerSecond: 100, seconds: 8) { time, number in
      (.seconds(1)..<(.seconds(2))).contains(time) || (time > .seconds(2) && number.isMultiple(of: 20))
    }
    XCTAssertEqual(attempts[0], 100)
    XCTAssertLessThanOrEqual(attempts[1], 110)
    XCTAssertGreaterThan(attempts.suffix(4).reduce(0, +), 400, "nothing was retried: \(attempts)")
  }
}
