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
  /// What lifts the rule (``InterceptorExplorer/allowing(_:)``), for an interceptor that breaks it on purpose; nil if nothing does.
  public let allowance: ExplorationAllowance?
  /// Whether the rule was broken again when the schedule ran again for its story. False if something differs between runs, such as
  /// other threads. True where nothing runs again: for code that hangs, and in ``InterceptorExplorer/replay(_:)``.
  public let breaksAgain: Bool

  public var description: String {
    let purpose = self.allowance.map { "\nIf that is on purpose: .allowing(\($0))" } ?? ""
    let again =
      self.breaksAgain
      ? "; again:"
      : """
      . The rule was not broken when the schedule ran again, and the story is from that run. Something differs between runs: other
      threads, real clocks, random numbers, or state that is created outside of the explorer's closure. To try again:
      """
    return """
      the rule “\(self.rule)” is broken: \(self.reason)\(purpose)

      \(self.story)

      found in schedule \(self.schedulesUntilFound)\(again)

      \(self.test)
      """
  }
}

extension ExplorationFailure {
  /// - Parameters:
  ///   - story: Of the schedule.
  ///   - found: How many schedules were run.
  ///   - breaksAgain: Whether the story is of a run that breaks the rule.
  init(_ finding: Finding, _ story: String, _ schedule: Schedule, found: Int, breaksAgain: Bool = true) {
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
      schedulesUntilFound: found,
      allowance: finding.allowance,
      breaksAgain: breaksAgain
    )
  }
}
