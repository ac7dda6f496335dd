internal import Connect
internal import Dispatch

/// Runs calls in real time on a separate serial queue.
final class RealTimeExecutor: CallExecutor {
  /// A timer that releases its work as soon as it is cancelled.
  private final class Timer: CallTimer {
    // Dispatch sources may be used from any thread; Dispatch does not declare them `Sendable`.
    nonisolated(unsafe) private let source: any DispatchSourceTimer

    init(_ source: any DispatchSourceTimer) {
      self.source = source
    }

    func cancel() {
      self.source.cancel()
    }
  }

  private static let key = DispatchSpecificKey<ObjectIdentifier>()

  private let queue = DispatchQueue(label: "calls in memory")
  private let start = ContinuousClock.now

  init() {
    self.queue.setSpecific(key: Self.key, value: ObjectIdentifier(self))
  }

  var now: Duration { ContinuousClock.now - self.start }

  var isCurrent: Bool { DispatchQueue.getSpecific(key: Self.key) == ObjectIdentifier(self) }

  func execute(_ work: @escaping @Sendable () -> Void) {
    self.queue.async(execute: work)
  }

  func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> any CallTimer {
    let source = DispatchSource.makeTimerSource(queue: self.queue)
    let nanoseconds = Int(clamping: delay.clamped.attoseconds / 1_000_000_000)
    // The handler keeps the source alive until then, even if nobody keeps the timer.
    source.setEventHandler {
      source.cancel()
      work()
    }
    source.schedule(deadline: .now() + .nanoseconds(nanoseconds))
    source.resume()
    return Timer(source)
  }
}
