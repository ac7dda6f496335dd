import Connect
import Foundation
import NIOCore
import Synchronization

/// Makes the calls of a load and measures them.
///
/// Each event loop has separate callers and results. The results are merged at the end of each second.
final class LoadRun: Sendable {
  /// How a call ended, and how large its bodies were on the wire.
  struct End: Sendable {
    var error: ConnectError?
    var requestBytes = 0
    var responseBytes = 0
  }

  typealias Call = @Sendable () async -> End

  /// One event loop with its results.
  private final class Worker: Sendable {
    let executor: any TaskExecutor
    let results = Mutex(LoadResults())

    init(_ executor: any TaskExecutor) {
      self.executor = executor
    }
  }

  private let plan: LoadPlan
  private let call: Call
  private let workers: [Worker]
  private let begun = Atomic(0)
  private let underWay = Atomic(0)
  private let isStopped = Atomic(false)
  private let start = ContinuousClock.now

  init(_ plan: LoadPlan, on executors: [any TaskExecutor], _ call: @escaping Call) {
    self.plan = plan
    self.call = call
    self.workers = executors.map(Worker.init)
  }

  var elapsed: Duration { ContinuousClock.now - self.start }

  /// Begins no further calls; calls in flight may end.
  func stop() { self.isStopped.store(true, ordering: .relaxed) }

  /// The results since the last time that they were taken.
  func takeResults() -> LoadResults {
    var results = LoadResults()
    for worker in self.workers {
      results.add(
        worker.results.withLock { current in
          let taken = current
          current = LoadResults()
          return taken
        }
      )
    }
    return results
  }

  /// Returns when all calls have ended. Cancelling the task cancels the calls.
  func run() async {
    switch self.plan.kind {
    case .closed(let callers): await self.runClosed(max(callers, 1))
    case .open(let rate): await self.runOpen(rate)
    }
  }

  // MARK: Closed

  private func runClosed(_ callers: Int) async {
    await withTaskGroup(of: Void.self) { group in
      for caller in 0..<callers {
        let worker = self.workers[caller % self.workers.count]
        let delay = self.plan.start(ofCaller: caller, of: callers)
        group.addTask(executorPreference: worker.executor) {
          guard await self.waitForStart(delay) else { return }
          while self.mayBegin() { await self.measure(since: .now, on: worker) }
        }
      }
    }
  }

  /// - Returns: False if the load is over before.
  private func waitForStart(_ delay: Duration) async -> Bool {
    while true {
      let isOver =
        self.isStopped.load(ordering: .relaxed)
        || self.plan.isOver(at: self.elapsed, begun: self.begun.load(ordering: .relaxed))
      guard !isOver else { return false }
      let rest = delay - self.elapsed
      guard rest > .zero else { return true }
      try? await Task.sleep(for: min(rest, .milliseconds(50)))
    }
  }

  private func mayBegin() -> Bool {
    guard !self.isStopped.load(ordering: .relaxed) else { return false }
    let number = self.begun.wrappingAdd(1, ordering: .relaxed).oldValue
    return !self.plan.isOver(at: self.elapsed, begun: number)
  }

  private func measure(since due: ContinuousClock.Instant, on worker: Worker) async {
    let end = await self.call()
    let latency = ContinuousClock.now - due
    worker.results.withLock { $0.note(end, latency: latency) }
  }

  // MARK: Open

  /// How often calls that are due begin.
  private static let tick = Duration.milliseconds(1)
  /// The maximum of calls in flight. Further due calls begin later, which their latencies show.
  private static let maximumUnderWay = 100_000

  private func runOpen(_ rate: Double) async {
    await withDiscardingTaskGroup { group in
      var number = 0
      let total = self.plan.total(rate: rate) ?? .max
      // Calls that are held back are still made after the duration: they were due.
      while !self.isStopped.load(ordering: .relaxed), number < total {
        let due = self.plan.due(at: self.elapsed, rate: rate)
        while number < due, self.underWay.load(ordering: .relaxed) < Self.maximumUnderWay {
          let worker = self.workers[number % self.workers.count]
          let time = self.start + self.plan.start(of: number, rate: rate)
          self.underWay.wrappingAdd(1, ordering: .relaxed)
          group.addTask(executorPreference: worker.executor) {
            await self.measure(since: time, on: worker)
            self.underWay.wrappingSubtract(1, ordering: .relaxed)
          }
          number += 1
        }
        try? await Task.sleep(for: Self.tick)
      }
    }
  }
}
