internal import Connect
internal import ConnectChannels

/// An exploration that goes on: runs schedules, and finds the shortest that breaks a rule.
///
/// Confined to the thread of the exploration.
final class Exploration<Observed: Sendable> {
  private let explorer: InterceptorExplorer<Observed>
  private var report = ExplorationReport()
  private var traces: Set<UInt64> = []
  private var sum = TraceHash()
  /// Instances that outlive their run without being a leak: all runs have the same ones.
  private var sharedInstances: Set<ObjectIdentifier> = []
  private let watch: ExplorationWatch

  init(_ explorer: InterceptorExplorer<Observed>, _ watch: ExplorationWatch, catchesJobs: Bool) {
    self.explorer = explorer
    self.watch = watch
    self.report.controlsAllTasks = catchesJobs
    self.report.controlsSleep = RuntimeHooks.sleepIsVirtual
  }

  private var settings: ExplorerSettings { self.explorer.settings }

  /// - Throws: ``ExplorationFailure``, what the subject's closure throws, or `CancellationError` if the watch says so.
  func explore() throws -> ExplorationReport {
    var plans = self.settings.methods.enumerated().map { index, method in
      SearchPlan(method, SeededRandom(seed: self.settings.seed &+ UInt64(index) &* 0x9e37_79b9))
    }
    for number in 0..<self.settings.scheduleCount {
      let index = number % plans.count
      let chooser = plans[index].next()
      let result = try self.run(chooser, plans[index].method)
      self.count(result)
      if let finding = result.finding {
        throw try self.failure(finding, result.schedule, found: number + 1)
      }
      let isNew = self.traces.insert(result.trace).inserted
      plans[index].didRun(result.schedule, result.points, isNew: isNew)
    }
    self.report.distinct = self.traces.count
    self.report.trace = self.sum.value
    return self.report
  }

  /// - Throws: ``ExplorationFailure`` if a rule is broken.
  func replay(_ schedule: Schedule) throws {
    let result = try self.run(Chooser(schedule), schedule.method, isTelling: true)
    guard let finding = result.finding else { return }
    throw ExplorationFailure(finding, result.story, schedule, found: 1)
  }

  private func count(_ result: RunResult) {
    self.report.schedules += 1
    self.report.choices += result.points.count
    self.report.usedOtherThreads = self.report.usedOtherThreads || result.usedOtherThreads
    self.report.coverage.merge(result.coverage) { $0 + $1 }
    self.sum.add(result.trace)
  }

  // MARK: Failures

  private func failure(_ finding: Finding, _ schedule: Schedule, found: Int) throws -> ExplorationFailure {
    var shrinker = Shrinker()
    let shrunk = try shrinker.shrink(schedule) { schedule in
      let result = try self.run(Chooser(schedule), schedule.method)
      return result.finding?.rule == finding.rule ? result.schedule : nil
    }
    var story = ""
    for schedule in [shrunk, schedule] {
      for _ in 0..<Self.maximumTellings {
        let told = try self.run(Chooser(schedule), schedule.method, isTelling: true)
        story = told.story
        guard let again = told.finding, again.rule == finding.rule else { continue }
        return ExplorationFailure(again, story, schedule, found: found)
      }
    }
    return ExplorationFailure(finding, story, schedule, found: found, breaksAgain: false)
  }

  /// How often a schedule runs again until it breaks its rule. Once is enough unless something differs from run to run.
  private static var maximumTellings: Int { 5 }

  // MARK: One run

  private func run(
    _ chooser: Chooser,
    _ method: StreamType,
    isTelling: Bool = false
  ) throws -> RunResult {
    let result = try self.runOnce(chooser, method, isTelling: isTelling)
    guard result.finding == nil, self.leak(in: result) != nil else { return result }
    // Instances that the next run has, too, are shared. Others are a leak.
    var again = try self.runOnce(Chooser(result.schedule), method, isTelling: isTelling)
    self.sharedInstances.formUnion(
      Set(again.survivors.map(\.identity)).intersection(result.survivors.map(\.identity))
    )
    guard again.finding == nil, self.leak(in: result) != nil, let leak = self.leak(in: again) else {
      return result
    }
    again.finding = Finding(
      rule: "instances are released",
      reason: "an instance of \(leak.name) lives on after its call, and after everything else was released",
      allowance: .sharedInstances
    )
    return again
  }

  /// An instance that lives on, and is not known to be shared.
  private func leak(in result: RunResult) -> InstanceWatch.Survivor? {
    result.survivors.first { !self.sharedInstances.contains($0.identity) }
  }

  private func runOnce(_ chooser: Chooser, _ method: StreamType, isTelling: Bool) throws -> RunResult {
    try self.watch.begin(method)
    let run = ExplorerRun(self.settings, method, chooser, self.watch, isTelling: isTelling)
    defer { run.close() }
    return try ExplorationThread.use(run.executor) {
      // Nothing of the subject lives on after this.
      try self.runSubject(run)
      return RunResult(run, method)
    }
  }

  private func runSubject(_ run: ExplorerRun) throws {
    let subject: Subject<Observed>
    do {
      subject = try self.explorer.build(ExplorerWorld(run: run))
    } catch {
      run.end()
      throw error
    }
    run.runCalls(subject.factories)
    if run.log.finding == nil {
      let calls = run.callers.calls(run.server)
      let rules = EndRules(
        settings: self.settings,
        calls: calls,
        exchanges: run.server.exchanges,
        callers: run.callers.callers,
        steps: run.steps.all,
        hasJumped: run.lastJump != nil,
        waitsForOtherThreads: {
          run.executor.usedOtherThreads || TimePassing(run: run).waitForOtherThreads(run.settings.patience)
        }
      )
      if let finding = rules.firstFinding() ?? self.brokenCheck(run, subject.observed, calls) {
        run.log.find(finding)
      }
    }
    run.end()
  }

  private func brokenCheck(_ run: ExplorerRun, _ observed: Observed, _ calls: [ExploredCall]) -> Finding? {
    guard !self.explorer.checks.isEmpty else { return nil }
    let exploration = ExplorationRun(
      subject: observed,
      calls: calls,
      steps: run.steps.all,
      duration: run.executor.now
    )
    for check in self.explorer.checks {
      do {
        if try check.holds(exploration) { continue }
        return Finding(rule: check.name, reason: "the test's own rule does not hold")
      } catch {
        return Finding(rule: check.name, reason: "the test's own rule throws: \(error)")
      }
    }
    return nil
  }
}

/// What is left of a run.
struct RunResult {
  let schedule: Schedule
  let points: [Chooser.Point]
  let trace: UInt64
  let coverage: [String: Int]
  let story: String
  let usedOtherThreads: Bool
  let survivors: [InstanceWatch.Survivor]
  var finding: Finding?

  init(_ run: ExplorerRun, _ method: StreamType) {
    self.schedule = run.chooser.schedule(Schedule(method: method))
    self.points = run.chooser.points
    self.trace = run.log.trace.value
    self.coverage = run.log.coverage
    self.story = run.log.isTelling ? run.log.story : ""
    self.usedOtherThreads = run.executor.usedOtherThreads
    let isWatched = !run.settings.allowance.contains(.sharedInstances)
    self.survivors = isWatched ? run.instances.survivors : []
    self.finding = run.log.finding
  }
}
