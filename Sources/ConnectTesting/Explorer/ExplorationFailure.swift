/// A schedule in which a rule is broken: the shortest that was found.
public struct ExplorationFailure: Error, Sendable, CustomStringConvertible {
  /// The rule, in a few words, such as “proceeds once”.
  public let rule: String
  /// What broke it.
  public let reason: String
  /// What happened, one line for each event.
  public let story: String
  /// The text of the schedule, for ``InterceptorExplorer/replay(_:)``.
  public let schedule: String
  /// A test that runs the schedule again.
  public let test: String
  /// How many schedules were run until the rule was broken.
  public let schedulesUntilFound: Int

  public var description: String {
    """
    the rule “\(self.rule)” is broken: \(self.reason)

    \(self.story)

    found in schedule \(self.schedulesUntilFound); again:

    \(self.test)
    """
  }
}

extension ExplorationFailure {
  /// - Parameters:
  ///   - story: Of the schedule.
  ///   - found: How many schedules were run.
  init(_ finding: Finding, _ story: String, _ schedule: Schedule, found: Int) {
    let digits = schedule.deviations.map { "\($0.choice)_\($0.option)" }.joined(separator: "_")
    let name = "testSchedule" + (digits.isEmpty ? "WithoutDeviations" : digits)
    self.init(
      rule: finding.rule,
      reason: finding.reason,
      story: story,
      schedule: schedule.description,
      test: """
        // With the explorer's expression up to .explore() as a variable.
        func \(name)() async throws {
          try await explorer.replay("\(schedule)")
        }
        """,
      schedulesUntilFound: found
    )
  }
}
