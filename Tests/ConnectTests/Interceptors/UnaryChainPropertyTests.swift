import Connect
import ConnectTesting
import Foundation
import NIOCore
import TestSupport
import XCTest

/// Random chains do what a simple model says.
///
/// The chains of ``testRandomChains()`` are others in each run; `CONNECT_CHAIN_SEED` repeats a run. Those of
/// ``testRandomCalls()`` are the same in each run; `CONNECT_CHAIN_SEED` makes others of them, and `CONNECT_CALL_SEED` repeats
/// the one call whose seed a failure names.
final class UnaryChainPropertyTests: XCTestCase {
  static var seed: UInt64 { self.number("CONNECT_CHAIN_SEED") ?? .random(in: 0...UInt64.max) }

  /// How many chains; `CONNECT_PROPERTY_ROUNDS` makes it another number.
  static func rounds(_ usual: Int) -> Int { self.number("CONNECT_PROPERTY_ROUNDS").map { Int($0) } ?? usual }

  /// Seeds for so many calls.
  static func callSeeds(_ count: Int) -> [UInt64] {
    if let seed = self.number("CONNECT_CALL_SEED") { return [seed] }
    var generator = SeededGenerator(quietly: self.number("CONNECT_CHAIN_SEED") ?? 1)
    return (0..<count).map { _ in generator.next() }
  }

  private static func number(_ name: String) -> UInt64? {
    ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) }
  }

  /// Hooks and tasks on any thread.
  func testRandomChains() async {
    var generator = SeededGenerator(seed: Self.seed)
    for round in 0..<Self.rounds(3000) {
      let chain = RandomChain(using: &generator)
      var model = RandomChainModel(chain)
      let expected = model.run()
      let run = RandomRun(chain, executor: VirtualExecutor(runsTasks: false))
      let response =
        Bool.random(using: &generator)
        ? await run.client.unary(.unary, "x") : await run.client.outcome(of: "x").outcome.wait()
      XCTAssertEqual(response.outcome, expected, "round \(round): \(chain)")
      XCTAssertEqual(run.events.all, model.events, "round \(round): \(chain)")
      run.transport.virtualExecutor.runUntilIdle()
      self.checkEnds(run, model, expected) { "round \(round): \(chain)" }
      guard self.testRun?.failureCount == 0 else { return }
      if response.outcome != expected || run.events.all != model.events { return }
    }
  }

  /// Call hooks, hedges, retries with delays, transparent retries, the deadline and cancellation together, in virtual time.
  func testRandomCalls() {
    for seed in Self.callSeeds(Self.rounds(3000)) {
      var generator = SeededGenerator(quietly: seed)
      let chain = RandomChain(using: &generator, isTimed: true)
      var model = RandomChainModel(chain)
      let expected = model.run()
      let run = RandomRun(chain, executor: VirtualExecutor())
      let outcomes = run.call(asTask: Bool.random(using: &generator))
      let what = { "CONNECT_CALL_SEED=\(seed): \(chain)" }

      XCTAssertEqual(outcomes, [expected], what())
      let isLate: (String) -> Bool = { event in
        chain.end.map { event.hasPrefix("a") && event.hasSuffix(" response \($0.outcome)") } ?? false
      }
      let events = run.events.all
      XCTAssertEqual(events.filter { !isLate($0) }, model.events, what())
      XCTAssertEqual(events.filter(isLate).sorted(), model.lateEvents.sorted(), what())
      self.check(run, model, what)
      self.checkEnds(run, model, expected, what)
      XCTAssertEqual(run.findLiving(), [], what())
      guard outcomes == [expected], self.testRun?.failureCount == 0 else { return }
    }
  }

  /// Checks that each end hook was told once, and last.
  private func checkEnds(
    _ run: RandomRun,
    _ model: RandomChainModel,
    _ outcome: RandomOutcome,
    _ what: () -> String
  ) {
    let expected = RandomEnds.expected(
      run.chain.endHooks,
      outcome,
      attemptCount: model.call.attempts.count
    )
    XCTAssertEqual(run.ends.all, expected, what())
    XCTAssertEqual(run.ends.lateEvents(of: run.events.all), [], what())
  }

  /// Checks what holds at the end of each call, whatever has become of it.
  private func check(_ run: RandomRun, _ model: RandomChainModel, _ what: () -> String) {
    let streams = run.transport.streams
    XCTAssertEqual(run.attempts.value.sorted(), model.call.attempts.sorted(), what())
    XCTAssertLessThanOrEqual(
      model.call.attempts.count,
      1 + run.chain.maximumRetries + min(run.chain.hedging?.maximumAttempts ?? 1, 5) - 1,
      what()
    )
    XCTAssertEqual(
      streams.map { $0.request.headers["grpc-previous-rpc-attempts"] },
      model.call.announcements.map { $0.map { ["\($0)"] } ?? [] },
      what()
    )
    XCTAssertTrue(streams.allSatisfy(\.isOver), what())
    XCTAssertTrue(streams.allSatisfy { $0.calls.isEmpty || $0.calls == ["cancel"] }, what())
    XCTAssertTrue(streams.allSatisfy { $0.isCancelled || $0.unconsumed >= 0 }, what())
  }
}
