extension InterceptorExplorer {
  /// Runs the schedules, and prints what they have covered unless ``quiet()`` was called.
  ///
  /// Explorations of one process run one after the other. If the task is cancelled, the exploration ends with its current schedule.
  ///
  /// - Returns: What was covered.
  /// - Throws: ``ExplorationFailure`` with the shortest schedule that breaks a rule; what the closure that builds the
  ///   subject throws; `CancellationError` if the task is cancelled.
  @discardableResult
  public func explore() async throws -> ExplorationReport {
    let report = try await ExplorerThread.run(hangingAfter: self.settings.hangLimit) { watch, catchesJobs in
      try Exploration(self, watch, catchesJobs: catchesJobs).explore()
    }
    if !self.settings.isQuiet { print(report) }
    return report
  }

  /// Runs one schedule again.
  ///
  /// - Parameter schedule: ``ExplorationFailure/schedule``, which a printed test has.
  /// - Throws: ``ExplorationFailure`` if a rule is broken, with the story of this schedule;
  ///   ``ExplorerScheduleError`` if the text is none of a schedule; `CancellationError` if the task is cancelled.
  public func replay(_ schedule: String) async throws {
    let schedule = try Schedule(parsing: schedule, methods: self.settings.methods)
    try await ExplorerThread.run(hangingAfter: self.settings.hangLimit) { watch, catchesJobs in
      try Exploration(self, watch, catchesJobs: catchesJobs).replay(schedule)
    }
  }
}
