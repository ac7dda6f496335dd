/// What an exploration has covered.
public struct ExplorationReport: Sendable, Hashable, CustomStringConvertible {
  /// How many schedules were run.
  public internal(set) var schedules = 0
  /// In how many of them something happened that had not happened in the ones before.
  public internal(set) var distinct = 0
  /// How many choices were made, with the boring ones.
  public internal(set) var choices = 0
  /// How often each kind of thing happened, by its name: answers, cancellations, deadlines, retries of neighbours, and others.
  public internal(set) var coverage: [String: Int] = [:]
  /// A number for all that has happened in all schedules. Equal explorations have equal ones.
  public internal(set) var trace: UInt64 = 0
  /// Whether other threads took part, so that the schedules are not quite the same in each run.
  public internal(set) var usedOtherThreads = false
  /// Whether all tasks could be made part of the schedules. If not, those of the concurrency pool are waited for.
  public internal(set) var controlsAllTasks = true
  /// Whether `Task.sleep` takes no real time. It does with another compiler than Swift 6.3; ``ExplorerWorld/clock`` always sleeps
  /// in virtual time.
  public internal(set) var controlsSleep = true

  public var description: String {
    var lines = ["explored \(self.schedules) schedules (\(self.distinct) different), \(self.choices) choices"]
    for (name, count) in self.coverage.sorted(by: { $0.key < $1.key }) {
      lines.append("  \(name): \(count)")
    }
    if !self.controlsAllTasks {
      lines.append("  this runtime runs tasks without executor in its pool: their order was left to chance")
    }
    if !self.controlsSleep {
      lines.append(
        "  Task.sleep takes real time with this compiler, and was waited for only as long as the explorer is patient"
      )
    }
    if self.usedOtherThreads { lines.append("  other threads took part: their order was left to chance") }
    return lines.joined(separator: "\n")
  }
}
