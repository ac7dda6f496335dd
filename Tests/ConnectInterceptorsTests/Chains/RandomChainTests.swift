import Connect
import ConnectTesting
import Foundation
import TestSupport
import XCTest

/// Ready-made interceptors in any combination and order do what a simple model says: in which order requests and
/// responses pass, who answers, fails and retries, how often the server is called, and what the caller gets.
/// `CONNECT_CHAIN_SEED` repeats a run.
final class RandomChainTests: XCTestCase {
  private static let environment = ProcessInfo.processInfo.environment
  private static let rounds = environment["CONNECT_PROPERTY_ROUNDS"].flatMap(Int.init) ?? 400

  func testRandomChains() async throws {
    let seed = Self.environment["CONNECT_CHAIN_SEED"].flatMap { UInt64($0) }
    var generator = SeededGenerator(seed: seed ?? .random(in: 0...UInt64.max))
    for round in 0..<Self.rounds {
      let chain = RandomChain(using: &generator)
      var model = RandomChainModel(chain)
      let scene = await RandomChainScene(chain)
      for (index, call) in chain.calls.enumerated() {
        let expected = model.run(call)
        let (text, code, messageCount) = try await scene.run(call)
        let context = "round \(round), call \(index): \(chain)"
        XCTAssertEqual(code, expected.name, context)
        XCTAssertEqual(text, expected.text, context)
        XCTAssertEqual(messageCount, expected.messageCount, context)
        XCTAssertEqual(scene.events, model.events, context)
        XCTAssertEqual(scene.servedCount.value, model.servedCount, context)
        XCTAssertEqual(scene.tokenCount.value, model.tokenCount, context)
        // What follows a difference says nothing.
        if (self.testRun?.failureCount ?? 0) > 0 { return }
      }
      scene.end()
    }
  }
}
