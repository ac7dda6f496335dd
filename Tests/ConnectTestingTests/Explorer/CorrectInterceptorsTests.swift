import ConnectTesting
import Foundation
import PlantedBugs
import XCTest

/// The explorer raises no alarm on interceptors without bugs, although these have something to do.
///
/// `make explore` runs more schedules, with several seeds.
final class CorrectInterceptorsTests: XCTestCase {
  private static let schedules = 500

  func testRaisesNoAlarmOnCorrectInterceptors() async throws {
    for interceptor in CorrectInterceptor.all {
      let report = try await self.quietly(interceptor.name) { try await interceptor.explore(schedules: $0) }
      XCTAssertEqual(report?.schedules, Self.schedules, interceptor.name)
    }
  }

  /// The rules of the bugs are about the bugs: without them, the same interceptors break none.
  func testRaisesNoAlarmOnMendedBugs() async throws {
    for bug in HeldOutBug.all {
      let report = try await self.quietly("\(bug.name), mended") {
        try await bug.exploreMended(schedules: $0)
      }
      XCTAssertEqual(report?.schedules, Self.schedules, bug.name)
    }
  }

  /// An interceptor that does nothing raises no alarm, either. So each does its work in at least one schedule.
  func testRaisesNoAlarmOnReadyMadeInterceptorsAtWork() async throws {
    for interceptor in ReadyMadeInterceptor.all {
      let missing = try await self.quietly(interceptor.name) {
        try await interceptor.missingWorks(schedules: $0)
      }
      XCTAssertEqual(missing, [], interceptor.name)
    }
  }

  /// Without one interceptor of a chain, a rule is broken, or work is not done. Otherwise its case would say nothing about it.
  func testEachReadyMadeInterceptorIsMissed() async throws {
    for interceptor in ReadyMadeInterceptor.all {
      for (place, name) in interceptor.chain.enumerated() {
        do {
          let missing = try await interceptor.missingWorks(schedules: Self.schedules, without: place)
          XCTAssertNotEqual(missing, [], "\(interceptor.name): nobody misses \(name)")
        } catch is ExplorationFailure {
          // The rule of the case that says what the interceptor does.
        }
      }
    }
  }

  func testAllReadyMadeInterceptorsAreExplored() throws {
    let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(
      path: "../../../Sources/ConnectInterceptors"
    )
    let files = try FileManager.default.subpathsOfDirectory(atPath: folder.path()).filter {
      $0.hasSuffix(".swift")
    }
    let declaration = #/public (?:final class|struct) (?<name>\w+): (?:Wire)?Interceptor\b/#
    let names = try files.flatMap { file in
      try String(contentsOf: folder.appending(path: file), encoding: .utf8).matches(of: declaration)
        .map { String($0.name) }
    }
    let explored = Set(ReadyMadeInterceptor.all.flatMap(\.chain))
    // This one is a struct of hooks, which are the user's own.
    XCTAssertEqual(Set(names).subtracting(explored), ["WireFunction"])
  }

  /// Explores, and takes a broken rule for an alarm.
  ///
  /// - Returns: Nil after an alarm.
  private func quietly<Result>(
    _ name: String,
    _ explore: (_ schedules: Int) async throws -> Result
  ) async throws -> Result? {
    do {
      return try await explore(Self.schedules)
    } catch let failure as ExplorationFailure {
      XCTFail("\(name): \(failure)")
      return nil
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
