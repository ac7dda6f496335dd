/// Makes a schedule as short as it can be while it breaks the same rule: drops deviations, and lowers options.
struct Shrinker {
  /// More tries than any schedule needs that a person wants to read.
  private static let maximumTries = 400

  private var tries = 0

  /// - Parameter run: Runs a schedule, and returns what was chosen if it breaks the rule.
  mutating func shrink(_ schedule: Schedule, _ run: (Schedule) throws -> Schedule?) rethrows -> Schedule {
    var best = schedule
    var hasChanged = true
    while hasChanged {
      hasChanged = false
      // From the end: later choices depend on earlier ones.
      for index in best.deviations.indices.reversed() where index < best.deviations.count {
        var shorter = best
        shorter.deviations.remove(at: index)
        if let found = try self.tryOut(shorter, run), Self.isShorter(found, than: best) {
          best = found
          hasChanged = true
        }
      }
      for index in best.deviations.indices where index < best.deviations.count {
        var option = 1
        while index < best.deviations.count, option < best.deviations[index].option {
          var lower = best
          lower.deviations[index].option = option
          if let found = try self.tryOut(lower, run), Self.isShorter(found, than: best) {
            best = found
            hasChanged = true
          }
          option += 1
        }
      }
    }
    return best
  }

  private mutating func tryOut(
    _ schedule: Schedule,
    _ run: (Schedule) throws -> Schedule?
  ) rethrows -> Schedule? {
    guard self.tries < Self.maximumTries else { return nil }
    self.tries += 1
    return try run(schedule)
  }

  private static func isShorter(_ one: Schedule, than other: Schedule) -> Bool {
    if one.deviations.count != other.deviations.count { return one.deviations.count < other.deviations.count }
    let (a, b) = (one.deviations.map(\.option), other.deviations.map(\.option))
    return a.reduce(0, +) < b.reduce(0, +)
  }
}
