internal import Connect
package import ConnectChannels
internal import Foundation
internal import Synchronization

/// What executors share that run on one thread in virtual time: the time and its timers, and the work that other threads
/// bring, until the end and after it. The executors themselves decide what runs next.
///
/// `@unchecked Sendable`: `timers` is touched only by the thread that has entered, one at a time; all else is atomic or
/// locked.
package final class VirtualThread: @unchecked Sendable {
  /// A piece of work.
  package enum Work: Sendable {
    case closure(@Sendable () -> Void)
    case job(UnownedJob)
  }

  /// Touched on the thread that has entered alone.
  package let timers = TimerQueue()
  private let inbox = Mutex<[Work]>([])
  private let hasInbox = Atomic(false)
  private let isOver = Atomic(false)
  /// The thread that runs here now; 0 if none does.
  private let thread = Atomic<UInt>(0)
  /// In nanoseconds. Written by the thread that has entered alone.
  private let time = Atomic<Int64>(0)

  package init() {}

  // MARK: Time

  /// May be read on any thread.
  package var now: Duration { .nanoseconds(self.nanoseconds) }

  package var nanoseconds: Int64 { self.time.load(ordering: .relaxed) }

  /// In whole nanoseconds, and not before `delay` has passed.
  package func time(after delay: Duration) -> Int64 {
    let (seconds, attoseconds) = max(delay.clamped, .zero).components
    let nanoseconds = seconds * 1_000_000_000 + (attoseconds + 999_999_999) / 1_000_000_000
    let (sum, overflows) = self.nanoseconds.addingReportingOverflow(nanoseconds)
    return overflows ? .max : sum
  }

  /// Time never goes back.
  package func move(to time: Int64) {
    self.time.store(max(self.nanoseconds, time), ordering: .relaxed)
  }

  // MARK: The thread

  /// Whether the calling thread has entered.
  package var isCurrent: Bool { self.thread.load(ordering: .relaxed) == Self.currentThread }

  /// Makes the calling thread the one that runs here. No other may be inside.
  package func enter() { self.thread.store(Self.currentThread, ordering: .sequentiallyConsistent) }

  package func leave() { self.thread.store(0, ordering: .sequentiallyConsistent) }

  private static var currentThread: UInt { UInt(pthread_self()) }

  // MARK: Work of other threads

  /// Brings work from any thread. If ``hasEnded`` is true then, ``runLateWork(_:)`` has to follow.
  package func post(_ work: Work) {
    self.inbox.withLock { $0.append(work) }
    self.hasInbox.store(true, ordering: .sequentiallyConsistent)
  }

  package func takePosted() -> [Work] {
    guard self.hasInbox.load(ordering: .acquiring) else { return [] }
    self.hasInbox.store(false, ordering: .sequentiallyConsistent)
    return self.inbox.withLock { work in
      defer { work = [] }
      return work
    }
  }

  // MARK: The end

  /// Whether nothing runs here any more but late work, such as the ends of what outlives a simulation.
  package var hasEnded: Bool { self.isOver.load(ordering: .sequentiallyConsistent) }

  /// ``runLateWork(_:)`` has to follow, when the thread has left.
  package func end() { self.isOver.store(true, ordering: .sequentiallyConsistent) }

  /// Runs work that came after the end, on the thread that brought it, one thread at a time.
  ///
  /// - Parameter run: Runs what ``takePosted()`` returns.
  package func runLateWork(_ run: () -> Void) {
    while self.hasInbox.load(ordering: .sequentiallyConsistent) {
      let (isMine, _) = self.thread.compareExchange(
        expected: 0,
        desired: Self.currentThread,
        ordering: .sequentiallyConsistent
      )
      // Otherwise the thread that is inside does the work, or looks again when it is done.
      guard isMine else { return }
      run()
      self.leave()
    }
  }
}
