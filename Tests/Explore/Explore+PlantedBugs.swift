import ConnectTesting
import Foundation
import PlantedBugs

extension Explore {
  /// Explores interceptors with and without bugs, and prints how long it takes until the bugs are found. A bug counts as found if
  /// the broken rule is one that says what the bug does.
  ///
  /// - Parameters:
  ///   - numbers: How many schedules each gets, and the seed.
  ///   - names: Which are explored, with what is found; all if empty.
  static func explorePlantedBugs(_ numbers: [UInt64], named names: Set<String>) async {
    let plan = PlantedPlan(
      schedules: numbers.first.map { Int(clamping: $0) } ?? 1_000,
      seed: numbers.count > 1 ? numbers[1] : 1,
      names: names
    )
    let missed = await self.explore(PlantedBug.all, plan, "bugs")
    // How many of these are found is a measurement.
    _ = await self.explore(HeldOutBug.all, plan, "held-out bugs")
    let alarms =
      await self.countAlarms(CorrectInterceptor.all + ReadyMadeInterceptor.all, plan)
      + self.countAlarms(HeldOutBug.all, plan, areMended: true)
    exit(missed + alarms == 0 ? 0 : 1)
  }

  /// - Returns: How many bugs were not found.
  private static func explore(_ bugs: [ExplorationCase], _ plan: PlantedPlan, _ kind: String) async -> Int {
    let bugs = plan.chosen(bugs)
    var found = 0
    var seconds = 0.0
    for bug in bugs {
      let (failure, time) = await self.explore(bug, plan)
      seconds += time
      if let failure, bug.isBug(failure) {
        found += 1
        self.say("\(bug.name): \(failure.rule), schedule \(failure.schedulesUntilFound), \(self.text(time))")
      } else {
        let other =
          failure.map { ": another rule is broken, \($0.rule)" } ?? " in \(plan.schedules) schedules"
        self.say("\(bug.name): NOT FOUND\(other), \(self.text(time))")
      }
      if let failure, !plan.names.isEmpty { self.say(failure.description) }
    }
    self.say("\(found) of \(bugs.count) \(kind) found, \(self.text(seconds))")
    return bugs.count - found
  }

  /// - Returns: In how many correct interceptors a rule is broken.
  private static func countAlarms(
    _ cases: [ExplorationCase],
    _ plan: PlantedPlan,
    areMended: Bool = false
  ) async -> Int {
    var alarms = 0
    var seconds = 0.0
    for interceptor in plan.chosen(cases) {
      let (failure, time) = await self.explore(interceptor, plan, isMended: areMended)
      seconds += time
      alarms += failure == nil ? 0 : 1
      let name = interceptor.name + (areMended ? ", mended" : "")
      self.say("\(name): \(failure.map { "ALARM\n\($0)" } ?? "no alarm"), \(self.text(time))")
    }
    self.say("\(alarms) alarms, \(self.text(seconds))")
    return alarms
  }

  /// - Returns: The broken rule, if there is one, and how long it took.
  private static func explore(
    _ explored: ExplorationCase,
    _ plan: PlantedPlan,
    isMended: Bool = false
  ) async -> (ExplorationFailure?, Double) {
    let start = ContinuousClock.now
    var failure: ExplorationFailure?
    do {
      let report =
        isMended
        ? try await explored.exploreMended(schedules: plan.schedules, seed: plan.seed)
        : try await explored.explore(schedules: plan.schedules, seed: plan.seed)
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

/// How interceptors are explored.
private struct PlantedPlan {
  let schedules: Int
  let seed: UInt64
  /// Those that are explored; all if empty.
  let names: Set<String>

  func chosen(_ cases: [ExplorationCase]) -> [ExplorationCase] {
    cases.filter { self.names.isEmpty || self.names.contains($0.name) }
  }
}
