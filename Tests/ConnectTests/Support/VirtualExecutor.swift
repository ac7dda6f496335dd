import Connect
import Dispatch
import Synchronization

/// An executor in virtual time: work runs on one thread, and time stands still until a test moves it.
final class VirtualExecutor: CallExecutor {
  private struct State {
    var now: Duration = .zero
    var timers: [Timer] = []
  }

  fileprivate final class Timer: CallTimer {
    let due: Duration
    let order: Int
    let work: @Sendable () -> Void
    private let isCancelled = Mutex(false)

    init(due: Duration, order: Int, work: @escaping @Sendable () -> Void) {
      self.due = due
      self.order = order
      self.work = work
    }

    func cancel() {
      self.isCancelled.withLock { $0 = true }
    }

    var isDead: Bool { self.isCancelled.withLock { $0 } }
  }

  private static let key = DispatchSpecificKey<ObjectIdentifier>()

  private let queue = DispatchQueue(label: "virtual executor")
  private let state = Mutex(State())

  init() {
    self.queue.setSpecific(key: Self.key, value: ObjectIdentifier(self))
  }

  var now: Duration { self.state.withLock { $0.now } }

  var isCurrent: Bool { DispatchQueue.getSpecific(key: Self.key) == ObjectIdentifier(self) }

  func execute(_ work: @escaping @Sendable () -> Void) {
    self.queue.async(execute: work)
  }

  func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> any CallTimer {
    self.state.withLock { state in
      let timer = Timer(due: state.now + delay, order: state.timers.count, work: work)
      state.timers.append(timer)
      return timer
    }
  }

  // MARK: For tests

  /// Waits until all work that was given, and what that gave, is done. Tasks that work elsewhere are not waited
  /// for.
  func settle() {
    for _ in 0..<8 { self.queue.sync {} }
  }

  /// Runs `work` on the executor and waits for it.
  func sync<T>(_ work: () throws -> T) rethrows -> T {
    try self.queue.sync(execute: work)
  }

  /// Moves time on, and runs each timer that is due at its time.
  func advance(by duration: Duration) {
    let end = self.now + duration
    while let timer = self.takeTimer(dueBy: end) {
      self.queue.sync {
        if !timer.isDead { timer.work() }
      }
    }
    self.state.withLock { $0.now = end }
    self.settle()
  }

  /// Moves time on without running the timers that are due, as when the executor is busy.
  func passUnnoticed(_ duration: Duration) {
    self.state.withLock { $0.now += duration }
  }

  private func takeTimer(dueBy end: Duration) -> Timer? {
    self.state.withLock { state in
      state.timers.removeAll { $0.isDead }
      guard let next = state.timers.filter({ $0.due <= end }).min(by: { $0.due < $1.due }) else { return nil }
      state.timers.removeAll { $0 === next }
      state.now = max(state.now, next.due)
      return next
    }
  }

  /// How many timers would still run.
  var pendingTimers: Int { self.state.withLock { $0.timers.filter { !$0.isDead }.count } }
}
