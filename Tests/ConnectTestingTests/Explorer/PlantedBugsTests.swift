import ConnectTesting
import Foundation
import PlantedBugs
import XCTest

/// How much the explorer finds: 30 interceptors with a bug each, and 25 without.
final class PlantedBugsTests: XCTestCase {
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
      return cells.count == 5 && Int(cells[0]) != nil ? [cells[0], cells[1], cells[4]] : nil
    }
    let planted = PlantedBug.all.enumerated().map { ["\($0 + 1)", $1.name, $1.source] }
    XCTAssertEqual(rows, planted)
  }

  func testFindsPlantedBugs() async throws {
    var missed: [String] = []
    for bug in PlantedBug.all {
      do {
        _ = try await bug.explore()
        missed.append(bug.name)
      } catch let failure as ExplorationFailure {
        await self.assertRepeats(failure, bug)
      }
    }
    XCTAssertLessThanOrEqual(missed.count, 2, "missed \(missed)")
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

  func testRaisesNoAlarmOnCorrectInterceptors() async throws {
    for interceptor in CorrectInterceptor.all { try await self.assertNoAlarm(interceptor) }
  }

  func testRaisesNoAlarmOnReadyMadeInterceptors() async throws {
    for interceptor in ReadyMadeInterceptor.all { try await self.assertNoAlarm(interceptor) }
  }

  private func assertNoAlarm(_ interceptor: ExplorationCase) async throws {
    do {
      let report = try await interceptor.explore(schedules: 500)
      XCTAssertEqual(report.schedules, 500, interceptor.name)
    } catch let failure as ExplorationFailure {
      XCTFail("\(interceptor.name): \(failure)")
    }
  }

  func testTheSameSeedGivesTheSameSchedules() async throws {
    for interceptor in CorrectInterceptor.all {
      let first = try await interceptor.explore(schedules: 100, seed: 7)
      let second = try await interceptor.explore(schedules: 100, seed: 7)
      XCTAssertEqual(first, second, interceptor.name)
    }
  }
}
