internal import Connect
internal import Synchronization

/// What the code under test waits for by ``ExplorerWorld/step(_:canFail:)``.
///
/// Confined to the thread of the exploration, but for tokens.
final class RunSteps {
  private enum Outcome {
    case success
    case failure
    case cancellation
  }

  private(set) var all: [ExploredStep] = []
  /// By their places in `all`.
  private var waiting: [Int: CheckedContinuation<Void, any Error>] = [:]
  /// Of those that have ended.
  private var results: [Int: Result<Void, any Error>] = [:]
  /// When a step has ended last.
  private(set) var lastEnd: Duration?

  private let tokenCount = Atomic(0)

  /// Begins a step.
  ///
  /// - Returns: Its number; nil if the run is over.
  func begin(_ name: String, canFail: Bool, in run: ExplorerRun) -> Int? {
    guard !run.supervisor.endsTasks else { return nil }
    let number = self.all.count
    self.all.append(ExploredStep(name: name, time: run.executor.now))
    run.log.cover("steps of the test")
    run.log.tell("step", nil, "“\(name)” begins")
    run.rules.check(beginOfStep: name, in: run)
    let here = Confined((steps: self, run: run))
    let options: [(delay: Duration?, isFailure: Bool)] =
      [(nil, false), (.milliseconds(50), false), (.seconds(2), false), (.seconds(30), false)]
      + (canFail ? [(nil, true), (.milliseconds(50), true)] : [])
    let (delay, isFailure) = options[run.choose(.step, among: options.count)]
    if isFailure {
      run.log.cover("steps that failed")
    } else if delay != nil {
      run.log.cover("steps that took long")
    }
    let end: @Sendable () -> Void = {
      here.value.steps.end(number, isFailure ? .failure : .success, in: here.value.run)
    }
    if let delay {
      _ = run.executor.schedule(after: delay, end)
    } else {
      run.executor.add(.closure(end), lane: 0)
    }
    return number
  }

  func makeToken() -> String {
    "token-\(self.tokenCount.add(1, ordering: .relaxed).newValue)"
  }

  func wait(for number: Int, _ continuation: CheckedContinuation<Void, any Error>) {
    if let result = self.results[number] {
      continuation.resume(with: result)
    } else {
      self.waiting[number] = continuation
    }
  }

  func cancel(_ number: Int, in run: ExplorerRun) {
    self.end(number, .cancellation, in: run)
  }

  /// Ends all steps, so that nothing waits any more.
  func endAll(in run: ExplorerRun) {
    for number in self.all.indices { self.end(number, .cancellation, in: run) }
  }

  private func end(_ number: Int, _ outcome: Outcome, in run: ExplorerRun) {
    guard self.all[number].endTime == nil else { return }
    let now = run.executor.now
    self.all[number].endTime = now
    self.lastEnd = now
    let name = self.all[number].name
    let result: Result<Void, any Error>
    switch outcome {
    case .success:
      run.log.tell("step ends", nil, "“\(name)” ends")
      result = .success(())
    case .failure:
      self.all[number].hasFailed = true
      run.log.tell("step fails", nil, "“\(name)” fails")
      result = .failure(ExplorerStepFailure(step: name))
    case .cancellation:
      run.log.tell("step is cancelled", nil, "“\(name)” is cancelled")
      result = .failure(CancellationError())
    }
    self.results[number] = result
    self.waiting.removeValue(forKey: number)?.resume(with: result)
  }
}
