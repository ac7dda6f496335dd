import Connect
import ConnectTesting
import NIOCore
import XCTest

/// Which calls hedge, and what holds their attempts back: the server's word and the budget.
final class HedgingPolicyTests: XCTestCase {
  // MARK: Which calls

  private static let others: [TextMethod] = [
    .unary,
    TextMethod(codablePath: "/test.Text/Put", streamType: .unary, idempotencyLevel: .idempotent),
  ]

  func testMethodsWithSideEffectsAreNotHedged() async {
    for method in Self.others {
      for options in [CallOptions(), CallOptions(hedging: HedgingPolicy(maximumAttempts: 3, delay: .zero))] {
        let call = HedgedCall(method: method, options: options)
        call.advance(by: .seconds(100))
        XCTAssertEqual(call.attempts.count, 1)
        call.attempt(1) { $0.reply(.unavailable) }
        let response = await call.outcome()
        XCTAssertEqual(response.code, .unavailable)
      }
    }
  }

  func testUnlessTheUserSaysSo() async {
    for method in Self.others {
      let policy = HedgingPolicy(maximumAttempts: 2, delay: .seconds(1), allowsSideEffects: true)
      let call = HedgedCall(policy, method: method)
      call.advance(by: .seconds(1))
      XCTAssertEqual(call.attempts.count, 2)
      call.attempt(2) { $0.reply("\"x\"") }
      let response = await call.outcome()
      XCTAssertEqual(response.message, "x")
    }
  }

  func testOptionsGoBeforeTheConfiguration() async {
    let cases: [(client: HedgingPolicy?, call: HedgingPolicy?, count: Int)] = [
      (nil, nil, 1),
      (nil, HedgingPolicy(delay: .seconds(1)), 2),
      (HedgingPolicy(maximumAttempts: 4, delay: .seconds(1)), nil, 4),
      (HedgingPolicy(maximumAttempts: 4, delay: .seconds(1)), HedgingPolicy(delay: .seconds(1)), 2),
      (HedgingPolicy(maximumAttempts: 4, delay: .seconds(1)), .disabled, 1),
      (HedgingPolicy(maximumAttempts: -1, delay: .seconds(1)), nil, 1),
    ]
    for (client, options, count) in cases {
      let call = HedgedCall(client, options: CallOptions(hedging: options))
      call.advance(by: .seconds(100))
      XCTAssertEqual(call.attempts.count, count)
      call.handle.cancel()
      _ = await call.outcome()
    }
  }

  func testTheConfigurationIsAskedByMethod() async {
    let asked = Events()
    let call = HedgedCall(
      configure: {
        $0.hedging = { method in
          asked.add(String(method.name))
          return HedgingPolicy(maximumAttempts: 2, delay: .seconds(1))
        }
      },
      script: { $0.reply($0.sentMessage) }
    )
    let response = await call.outcome()
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(asked.all, ["Read"])
  }

  func testStreamsAreNotHedged() async {
    let transport = ScriptedTransport.silent()
    let client = ProtocolClient.scripted(transport) {
      $0.hedging = { _ in HedgingPolicy(maximumAttempts: 3, delay: .zero, allowsSideEffects: true) }
    }
    let stream = client.serverStream(.serverStream, "x")
    transport.virtualExecutor.advance(by: .seconds(10))
    XCTAssertEqual(transport.streams.count, 1)
    stream.cancel()
  }

  // MARK: Pushback

  private static func pushBack(_ value: String) -> (ScriptedStream) -> Void {
    { stream in
      stream.respond(
        status: 503,
        headers: ["content-type": ["application/json"], "grpc-retry-pushback-ms": [value]]
      )
      stream.send(ByteBuffer(string: #"{"code":"unavailable","message":"pushed back"}"#))
      stream.end()
    }
  }

  func testTheServerPutsOffTheNextAttempt() async {
    let call = HedgedCall()
    call.attempt(1, Self.pushBack("2500"))
    XCTAssertEqual(call.attempts.count, 1)
    XCTAssertFalse(call.isOver)
    call.advance(by: .milliseconds(2499))
    XCTAssertEqual(call.attempts.count, 1)
    call.advance(by: .milliseconds(1))
    XCTAssertEqual(call.attempts.count, 2)
    call.advance(by: .seconds(1))
    XCTAssertEqual(call.attempts.count, 3, "the schedule goes on from there")
    call.attempt(2) { $0.reply("\"x\"") }
    let response = await call.outcome()
    XCTAssertEqual(response.message, "x")
  }

  func testItHoldsWhileOthersRun() async {
    let call = HedgedCall()
    call.advance(by: .seconds(1))
    call.attempt(1, Self.pushBack("300"))
    XCTAssertEqual(call.transport.virtualExecutor.scheduled, [.milliseconds(1300)])
    call.advance(by: .milliseconds(300))
    XCTAssertEqual(call.attempts.count, 3)
    call.attempt(2, Self.pushBack("300"))
    call.attempt(3, Self.pushBack("300"))
    let response = await call.outcome()
    XCTAssertEqual(response.error?.message, "pushed back")
  }

  func testTheServerWantsNoOther() async {
    for value in ["-1", "soon", "", "99999999999999999999", "60001"] {
      let call = HedgedCall()
      call.attempt(1, Self.pushBack(value))
      let response = await call.outcome()
      XCTAssertEqual(response.error?.message, "pushed back", value)
      XCTAssertEqual(call.attempts.count, 1, value)
    }
  }

  func testThoseThatRunGoOn() async {
    for value in ["-1", "60001"] {
      let call = HedgedCall()
      call.advance(by: .seconds(1))
      call.attempt(1, Self.pushBack(value))
      call.advance(by: .seconds(100))
      XCTAssertEqual(call.attempts.count, 2)
      call.attempt(2) { $0.reply("\"x\"") }
      let response = await call.outcome()
      XCTAssertEqual(response.message, "x")
    }
  }

  func testNotPastTheDeadline() async {
    let call = HedgedCall(timeout: .seconds(2))
    call.attempt(1, Self.pushBack("2000"))
    let response = await call.outcome()
    XCTAssertEqual(response.error?.message, "pushed back")
  }

  func testTheDeadlineAndCancellationWhileItHolds() async {
    for isCancelled in [true, false] {
      let call = HedgedCall(timeout: .seconds(3))
      call.attempt(1, Self.pushBack("2900"))
      call.transport.virtualExecutor.passUnnoticed(.seconds(1))
      if isCancelled {
        call.handle.cancel()
      } else {
        call.transport.virtualExecutor.passUnnoticed(.seconds(2))
      }
      call.advance(by: .zero)
      let response = await call.outcome()
      XCTAssertEqual(response.code, isCancelled ? .canceled : .deadlineExceeded)
      XCTAssertEqual(call.attempts.count, 1)
    }
  }

  // MARK: The budget

  /// 3 of 4 tokens are left. Attempts need more than 2.
  private static func budget() -> RetryBudget {
    let budget = RetryBudget(maximumTokens: 4)
    budget.recordFailure()
    return budget
  }

  private func policy(_ budget: RetryBudget) -> HedgingPolicy {
    HedgingPolicy(maximumAttempts: 3, delay: .seconds(1), budget: budget)
  }

  func testNoHedgesWithoutBudget() async {
    let budget = Self.budget()
    budget.recordFailure()
    let call = HedgedCall(self.policy(budget))
    call.advance(by: .seconds(100))
    XCTAssertEqual(call.attempts.count, 1)
    call.attempt(1) { $0.reply("\"x\"") }
    let response = await call.outcome()
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(budget.tokens, 2.1)
  }

  func testFailuresUseItUp() async {
    let budget = RetryBudget(maximumTokens: 4)
    let call = HedgedCall(self.policy(budget), script: { $0.reply(.unavailable) })
    let response = await call.outcome()
    XCTAssertEqual(response.code, .unavailable)
    XCTAssertEqual(call.attempts.count, 2)
    XCTAssertEqual(budget.tokens, 2)
    let next = HedgedCall(self.policy(budget), script: { $0.reply(.unavailable) })
    let nextResponse = await next.outcome()
    XCTAssertEqual(nextResponse.code, .unavailable)
    XCTAssertEqual(next.attempts.count, 1)
  }

  func testWhatCounts() async {
    let cases: [(script: (ScriptedStream) -> Void, tokens: Double)] = [
      ({ $0.reply("\"x\"") }, 3.1),
      ({ $0.reply(.notFound) }, 3),
      ({ $0.reply(.unavailable) }, 2),
      (Self.pushBack("-1"), 2),
    ]
    for (script, tokens) in cases {
      let budget = Self.budget()
      let call = HedgedCall(self.policy(budget))
      call.attempt(1, script)
      _ = await call.outcome()
      XCTAssertEqual(budget.tokens, tokens)
    }
  }

  func testLosersDoNotCount() async {
    let budget = Self.budget()
    let call = HedgedCall(self.policy(budget))
    call.advance(by: .seconds(2))
    call.attempt(2) { $0.reply("\"x\"") }
    _ = await call.outcome()
    XCTAssertEqual(budget.tokens, 3.1)
  }
}
