internal import Synchronization

/// Headers of a stream that pass when the next result arrives or when time is up, whichever is first.
final class DelayedHeaders: Sendable {
  private let hasPassed = Atomic(false)
  private let onPass: @Sendable () -> Void

  init(_ onPass: @escaping @Sendable () -> Void) {
    self.onPass = onPass
  }

  func pass() {
    if !self.hasPassed.exchange(true, ordering: .acquiringAndReleasing) { self.onPass() }
  }
}
