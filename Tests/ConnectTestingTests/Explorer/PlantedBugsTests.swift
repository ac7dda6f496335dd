import ConnectTesting
import Foundation
import PlantedBugs
import XCTest

/// How much the explorer finds: interceptors with a bug each. A bug is found if the broken rule says what the bug does; any other
/// broken rule is an alarm.
final class PlantedBugsTests: XCTestCase {
  private static let seeds: [UInt64] = [1, 2, 7]

  /// The list is older than the explorer, and stays what it was.
  func testTheListSaysWhatIsPlanted() throws {
    let list = try String(
      contentsOf: URL(filePath: #filePath).deletingLastPathComponent().appending(
        path: "../../PlantedBugs/README.md"
      ),
      encoding: .utf8
    )
    let rows = list.split(separator: "\n").compactMap { line -> [String]? in
      let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
      return cells.count == 6 && Int(cells[0]) != nil ? [cells[0], cells[1], cells[4], cells[5]] : nil
    }
    let bugs = (PlantedBug.all + HeldOutBug.all).enumerated().map { number, bug in
      ["\(number + 1)", bug.name, bug.rules.map { "“\($0)”" }.joined(separator: " or "), bug.source]
    }
    XCTAssertEqual(rows, bugs)
  }

  /// Takes seconds. The limit is what the 30 may take in all.
  func testFindsPlantedBugs() async throws {
    for seed in Self.seeds {
      let start = ContinuousClock.now
      let missed = try await self.missed(PlantedBug.all, seed)
      XCTAssertEqual(missed, [], "seed \(seed)")
      XCTAssertLessThan(start.duration(to: .now), .seconds(60), "seed \(seed)")
    }
  }

  /// README.md has the figures. They are a measurement, and no aim: this only notices when the explorer finds fewer.
  func testFindsMostHeldOutBugs() async throws {
    for seed in Self.seeds {
      let missed = try await self.missed(HeldOutBug.all, seed)
      XCTAssertLessThanOrEqual(missed.count, 1, "seed \(seed): \(missed)")
    }
  }

  /// - Returns: The bugs that were not found, with the rule that was broken in their place.
  private func missed(_ bugs: [ExplorationCase], _ seed: UInt64) async throws -> [String] {
    var missed: [String] = []
    for bug in bugs {
      do {
        _ = try await bug.explore(seed: seed)
        missed.append(bug.name)
      } catch let failure as ExplorationFailure {
        if !bug.isBug(failure) {
          missed.append("\(bug.name), but “\(failure.rule)” is broken: \(failure.reason)")
        }
        if seed == Self.seeds[0] { await self.assertRepeats(failure, bug) }
      }
    }
    return missed
  }

  /// The schedule that a failure prints breaks the same rule, with the same story.
  private func assertRepeats(_ failure: ExplorationFailure, _ bug: ExplorationCase) async {
    do {
      try await bug.replay(failure.schedule)
      XCTFail("\(bug.name): \(failure.schedule) breaks no rule the second time")
    } catch let again as ExplorationFailure {
      XCTAssertEqual(again.rule, failure.rule, bug.name)
      XCTAssertEqual(again.story, failure.story, bug.name)
    } catch {
      XCTFail("\(bug.name): \(error)")
    }
  }
}
