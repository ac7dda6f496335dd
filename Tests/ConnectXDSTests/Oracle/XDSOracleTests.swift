internal import Foundation
internal import XCTest

/// Seeded configurations, each with the same calls by grpcio and by this client: servers, codes, ACKs and NACKs have to be the same.
final class XDSOracleTests: XCTestCase {
  /// Seeds that are run: 50, or a tenth of the rounds of `make properties`, which are 1,000.
  private static var seeds: Range<Int> {
    let environment = ProcessInfo.processInfo.environment
    if let text = environment["CONNECT_XDS_SEED"], let seed = Int(text) { return seed..<seed + 1 }
    guard let text = environment["CONNECT_PROPERTY_ROUNDS"], let rounds = Int(text) else { return 0..<50 }
    return 0..<max(1, rounds / 10)
  }

  func testSeeds() async throws {
    let oracle = try await Oracle.start()
    // Several at a time, as each mostly waits.
    let mistakes = await withTaskGroup(of: String?.self) { group in
      var mistakes: [String] = []
      for (index, seed) in Self.seeds.enumerated() {
        if index >= 4, let mistake = await group.next() { mistakes += mistake.map { [$0] } ?? [] }
        group.addTask { await Self.mistake(seed, oracle) }
      }
      for await mistake in group { mistakes += mistake.map { [$0] } ?? [] }
      return mistakes
    }
    for mistake in mistakes { XCTFail(mistake) }
    await oracle.process.stop()
  }

  /// What is different for a seed; nil for nothing.
  private static func mistake(_ seed: Int, _ oracle: Oracle) async -> String? {
    var differences: [String] = []
    var features: [String] = []
    // Which servers calls reach is partly left to chance: what differs once only is none.
    for _ in 0..<3 {
      do {
        async let reference = oracle.reference(seed)
        let (steps, scenario) = try await oracle.run(seed)
        features = scenario.features
        differences = Self.differences(steps, try await reference, scenario)
        if differences.isEmpty { return nil }
      } catch {
        return "seed \(seed): \(error)"
      }
    }
    return "seed \(seed) (\(features.joined(separator: ", "))):\n  \(differences.joined(separator: "\n  "))"
  }

  private static func differences(
    _ ours: [Oracle.Step],
    _ theirs: [Oracle.Step],
    _ scenario: Oracle.Scenario
  ) -> [String] {
    var result: [String] = []
    for (index, (our, their)) in zip(ours, theirs).enumerated() {
      for (number, (one, other)) in zip(our.calls, their.calls).enumerated() {
        let call = scenario.calls[index][number]
        let text = "step \(index), call \(number) \(call.path) \(call.metadata)"
        if Set(one.codes.keys) != Set(other.codes.keys) {
          result.append("\(text): codes \(one.codes), but grpcio has \(other.codes)")
        }
        if call.codes != true, Set(one.servers.keys) != Set(other.servers.keys) {
          result.append("\(text): servers \(one.servers), but grpcio has \(other.servers)")
        }
      }
      for kind in MeshPlane.Kind.allCases {
        let (one, other) = (our.summary[kind.rawValue], their.summary[kind.rawValue])
        let (names, theirNames) = (one?.names ?? [], other?.names ?? [])
        // grpcio goes on asking for the routes of a listener that was deleted.
        let isForNothing = !scenario.hasListener[index] && names.isEmpty
        if names != theirNames, !isForNothing {
          result.append("step \(index): asks for \(kind) \(names), but grpcio for \(theirNames)")
        }
        guard let one, let other, !names.isEmpty else { continue }
        if one.outcome != other.outcome || one.named != other.named {
          result.append(
            "step \(index): \(kind) \(one.outcome) \(one.error), but grpcio \(other.outcome) \(other.error)"
          )
        }
      }
    }
    return result
  }
}

extension MeshPlane.Summary {
  /// The resources that the reason of a NACK names.
  fileprivate var named: Set<String> { Set(self.sent.filter { self.error.contains($0) }) }
}
