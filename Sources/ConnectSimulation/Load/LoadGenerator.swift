internal import ConnectChannels

/// Begins the calls of a run.
///
/// `@unchecked Sendable`: touched on the simulation's executor alone.
final class LoadGenerator: @unchecked Sendable {
  private let load: SimulatedLoad
  private weak var cluster: SimulatedCluster?
  private let executor: SimulationExecutor
  private let end: Duration
  private let call: @Sendable (Int) async throws -> Void
  private var random: SeededRandom
  private var count = 0

  init(
    _ load: SimulatedLoad,
    on cluster: SimulatedCluster,
    until end: Duration,
    _ call: @escaping @Sendable (Int) async throws -> Void
  ) {
    self.load = load
    self.cluster = cluster
    self.executor = cluster.executor
    self.end = end
    self.call = call
    self.random = cluster.makeRandom()
  }

  func start() {
    self.executor.execute {
      switch self.load.kind {
      case .open(let rate):
        // A billion seconds are longer than any run.
        if rate > 0 { self.beginNext(after: .exponential(mean: .seconds(1 / max(rate, 1e-9)))) }
      case .series(let rates, let length):
        let highest = rates.max() ?? 0
        guard highest > 0 else { return }
        let start = self.executor.now
        self.beginNext(after: .exponential(mean: .seconds(1 / max(highest, 1e-9)))) {
          let index = Int((self.executor.now - start) / length) % rates.count
          // Of calls at the highest rate, so many are left that the rate is right.
          return self.random.fraction() * highest < rates[index]
        }
      case .closed(let callers, let pause):
        for _ in 0..<callers { self.beginCaller(pause) }
      }
    }
  }

  /// - Parameter isDue: Asked for each call whether it is made.
  private func beginNext(after gap: Latency, isDue: @escaping @Sendable () -> Bool = { true }) {
    let delay = gap.sample(&self.random)
    guard self.executor.now + delay < self.end else { return }
    _ = self.executor.schedule(after: delay) {
      if isDue() { self.begin {} }
      self.beginNext(after: gap, isDue: isDue)
    }
  }

  private func beginCaller(_ pause: Latency) {
    guard self.executor.now < self.end else { return }
    self.begin {
      let delay = pause.sample(&self.random)
      // Not at once: calls that fail without taking time would keep time from passing.
      _ = self.executor.schedule(after: max(delay, .milliseconds(1))) { self.beginCaller(pause) }
    }
  }

  private func begin(then done: @escaping @Sendable () -> Void) {
    self.count += 1
    self.cluster?.begin(self.count, self.call, then: done)
  }
}
