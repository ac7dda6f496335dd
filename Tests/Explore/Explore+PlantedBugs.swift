import ConnectTesting
import Foundation
import PlantedBugs

extension Explore {
  /// Explores interceptors with and without bugs, and prints how long it takes until the bugs are found.
  ///
  /// - Parameters:
  ///   - numbers: How many schedules each gets, and the seed.
  ///   - names: Which are explored, with what is found; all if empty.
  static func explorePlantedBugs(_ numbers: [UInt64], named names: Set<String>) async {
    let schedules = numbers.first.map { Int(clamping: $0) } ?? 1_000
    let seed = numbers.count > 1 ? numbers[1] : 1
    var found = 0
    var bugSeconds = 0.0
    let bugs = PlantedBug.all.filter { names.isEmpty || names.contains($0.name) }
    for bug in bugs {
      let (failure, seconds) = await self.explore(bug, schedules, seed)
      bugSeconds += seconds
      guard let failure else {
        self.say("\(bug.name): NOT FOUND in \(schedules) schedules, \(self.text(seconds))")
        continue
      }
      found += 1
      self.say(
        "\(bug.name): \(failure.rule), schedule \(failure.schedulesUntilFound), \(self.text(seconds))"
      )
      if !names.isEmpty { self.say(failure.description) }
    }
    var alarms = 0
    var correctSeconds = 0.0
    let others = CorrectInterceptor.all + ReadyMadeInterceptor.all
    for interceptor in others where names.isEmpty || names.contains(interceptor.name) {
      let (failure, seconds) = await self.explore(interceptor, schedules, seed)
      correctSeconds += seconds
      self.say("\(interceptor.name): \(failure.map { "ALARM\n\($0)" } ?? "no alarm"), \(self.text(seconds))")
      alarms += failure == nil ? 0 : 1
    }
    self.say("\(found) of \(bugs.count) bugs found, \(self.text(bugSeconds))")
    self.say("\(alarms) alarms, \(self.text(correctSeconds))")
  }

  /// - Returns: The broken rule, if there is one, and how long it took.
  private static func explore(
    _ explored: ExplorationCase,
    _ schedules: Int,
    _ seed: UInt64
  ) async -> (ExplorationFailure?, Double) {
    let start = ContinuousClock.now
    var failure: ExplorationFailure?
    do {
      let report = try await explored.explore(schedules: schedules, seed: seed)
      if report.usedOtherThreads || !report.controlsAllTasks { self.say("\(explored.name): \(report)") }
    } catch let error as ExplorationFailure {
      failure = error
    } catch {
      self.say("\(explored.name) threw \(error)")
    }
    let time = start.duration(to: .now)
    return (failure, Double(time.components.seconds) + Double(time.components.attoseconds) * 1e-18)
  }

  private static func text(_ seconds: Double) -> String { String(format: "%.2f s", seconds) }
}
