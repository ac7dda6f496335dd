import ConnectSimulation
import Exploration
import Foundation

/// Runs scenarios by their seeds, one after the other, and prints those in which something happened that must not.
@main
enum Explore {
  static func main() async {
    let arguments = CommandLine.arguments.dropFirst()
    let numbers = arguments.compactMap { UInt64($0) }
    if arguments.first == "seed", let seed = numbers.first {
      await self.show(seed)
      return
    }
    if arguments.first == "speed" {
      await self.showSpeed()
      return
    }
    if arguments.first == "mesh-size" {
      self.measureMesh(endpoints: Int(numbers.first ?? 10_000), limit: numbers.dropFirst().first)
      return
    }
    if arguments.first == "mesh" {
      await self.exploreMeshes(numbers)
      return
    }
    if arguments.first == "planted" {
      await self.explorePlantedBugs(numbers, named: Set(arguments.dropFirst().filter { UInt64($0) == nil }))
      return
    }
    let count = numbers.first ?? 1_000
    let first = numbers.count > 1 ? numbers[1] : 1
    guard count > 0 else { return }
    var problems = 0
    var calls = 0
    var checks: [String: [UInt64]] = [:]
    for seed in first..<(first + count) {
      let scenario = Scenario(seed: seed)
      let finding = await scenario.run()
      calls += finding.report.calls
      for check in finding.checks { checks[check, default: []].append(seed) }
      if !finding.problems.isEmpty {
        problems += 1
        self.say("seed \(seed): \(finding.problems.joined(separator: "; "))")
        self.say("  again: make explore seed=\(seed)")
        self.say("  \(scenario)")
      }
      let done = seed - first + 1
      if done.isMultiple(of: 1_000), done < count {
        self.say("\(done) seeds, \(calls) calls, \(problems) with problems")
      }
    }
    for (check, seeds) in checks.sorted(by: { $0.key < $1.key }) {
      let first = seeds.prefix(3).map { "\($0)" }.joined(separator: ", ")
      self.say("checked in \(seeds.count) seeds: \(check) (such as \(first))")
    }
    self.say("\(count) seeds from \(first), \(calls) calls: \(problems) with problems")
    exit(problems == 0 ? 0 : 1)
  }

  /// The same for clients that control planes configure.
  private static func exploreMeshes(_ numbers: [UInt64]) async {
    let count = numbers.first ?? 1_000
    let first = numbers.count > 1 ? numbers[1] : 1
    var problems = 0
    var calls = 0
    for seed in first..<(first + max(count, 1)) {
      let scenario = MeshScenario(seed: seed)
      let finding = await scenario.run()
      calls += finding.report.calls
      let done = seed - first + 1
      if done.isMultiple(of: 1_000), done < count {
        self.say("\(done) meshes, \(calls) calls, \(problems) with problems")
      }
      guard !finding.problems.isEmpty else { continue }
      problems += 1
      self.say("mesh seed \(seed): \(finding.problems.joined(separator: "; "))")
      self.say("  again: make explore mesh=\(seed)")
      self.say("  \(scenario)")
    }
    self.say("\(count) meshes from \(first), \(calls) calls: \(problems) with problems")
    exit(problems == 0 ? 0 : 1)
  }

  /// What it takes to apply the endpoints of a control plane.
  ///
  /// - Parameter limit: The milliseconds that an update may take. Above that the program fails.
  private static func measureMesh(endpoints: Int, limit: UInt64?) {
    guard let size = MeshSize.measure(endpoints: endpoints) else {
      self.say("the client did not get the endpoints")
      exit(1)
    }
    self.say("\(size)")
    guard let limit, max(size.first.sum, size.change.sum) > Double(limit) * 1e3 else { return }
    self.say("more than \(limit) ms")
    exit(1)
  }

  /// What was found so far stays if somebody stops the program.
  static func say(_ line: String) {
    print(line)
    fflush(nil)
  }

  /// Five minutes of 50 servers with 2,000 calls a second, and what they take.
  private static func showSpeed() async {
    func processorTime() -> Double {
      var usage = rusage()
      getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
      return Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
        + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6
    }
    let start = processorTime()
    let report = await Scenario.large(seed: 7)
    let time = processorTime() - start
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    print(report)
    print("\(Int(time.rounded())) s of processor time, \(usage.ru_maxrss / 1_024) MiB at most")
  }

  /// Everything of one seed, twice: it has to be the same.
  private static func show(_ seed: UInt64) async {
    let scenario = Scenario(seed: seed)
    print(scenario)
    let finding = await scenario.run()
    let again = await scenario.run()
    print("")
    print(finding.report)
    for problem in finding.problems { print("PROBLEM  \(problem)") }
    if again.report != finding.report {
      print("PROBLEM  the second run was another one: trace \(again.report.trace)")
    }
  }
}
