/// Ends the test run when a test hangs: nothing else helps against code that never returns.
///
/// It watches until it is released.
final class Watchdog: Sendable {
  /// Far longer than a round takes on the busiest machine.
  private static let patience = Duration.seconds(60)

  private let round = Box(0)
  private let task: Task<Void, any Error>

  init(function: String = #function) {
    let round = self.round
    self.task = Task {
      var last = -1
      while true {
        try await Task.sleep(for: Self.patience)
        let current = round.value
        guard current != last else { fatalError("\(function) hangs in round \(current)") }
        last = current
      }
    }
  }

  deinit {
    self.task.cancel()
  }

  /// Marks the start of a round.
  func begin(round: Int) {
    self.round.value = round
  }
}
