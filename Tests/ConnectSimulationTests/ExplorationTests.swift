import ConnectSimulation
import Exploration
import XCTest

/// Some seeds of `make explore`.
final class ExplorationTests: XCTestCase {
  func testTheFirstSeeds() async {
    for seed in 1...40 as ClosedRange<UInt64> {
      let scenario = Scenario(seed: seed)
      let finding = await scenario.run()
      XCTAssertEqual(finding.problems, [], "\(scenario)\nmake explore seed=\(seed)")
    }
  }

  /// In which calls were made that must not have been: cached answers paid for retries.
  func testSeedsThatFoundSomething() async {
    for seed in [78_624, 81_065] as [UInt64] {
      let finding = await Scenario(seed: seed).run()
      XCTAssertEqual(finding.problems, [], "make explore seed=\(seed)")
    }
  }

  /// Trees of policies and routes, and what the model has checked of them.
  func testZones() async {
    let seeds: [(UInt64, String)] = [
      (36, "comeback"), (296, "comeback"), (90, "repetition"), (113, "spill"), (3, "targets, nested"),
      (76, "targets, weighted"), (247, "home, routes"),
    ]
    for (seed, check) in seeds {
      let scenario = Scenario(seed: seed)
      let finding = await scenario.run()
      XCTAssertEqual(finding.problems, [], "\(scenario)\nmake explore seed=\(seed)")
      XCTAssertTrue(finding.checks.contains(check), "seed \(seed) has no \(check)")
    }
  }

  /// Clients that control planes configure. In some of them calls wait for a dead server of a cluster that routes leave, and hear of
  /// another server there, or of the end of the cluster. In the last ones calls waited for ever in a cluster that routes had left, or failed
  /// while the control plane could not be reached.
  func testMeshes() async {
    for seed in Array(1...30) + [156, 91, 32] as [UInt64] {
      let scenario = MeshScenario(seed: seed)
      let finding = await scenario.run()
      XCTAssertEqual(finding.problems, [], "\(scenario)\nmake explore mesh=\(seed)")
    }
  }

  func testEachMeshIsTheSameAgain() async {
    for seed in 1...4 as ClosedRange<UInt64> {
      let first = await MeshScenario(seed: seed).run()
      let second = await MeshScenario(seed: seed).run()
      XCTAssertEqual(first.report, second.report, "make explore mesh=\(seed)")
    }
  }

  func testEachSeedIsTheSameAgain() async {
    for seed in 1...6 as ClosedRange<UInt64> {
      let first = await Scenario(seed: seed).run()
      let second = await Scenario(seed: seed).run()
      XCTAssertEqual(first.report, second.report, "seed \(seed)")
    }
  }

  /// The trace of a seed is the same in each process, and in debug and release builds: `make explore seed=42` prints it, too. A
  /// change of what calls do may change it.
  func testTheTraceOfASeed() async {
    let finding = await Scenario(seed: 42).run()
    XCTAssertEqual(finding.report.trace, "33d2020b52453015")
  }
}
