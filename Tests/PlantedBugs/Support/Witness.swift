internal import Synchronization

/// Remembers what interceptors did in any of the schedules of an exploration.
final class Witness: Sendable {
  private let seen = Mutex<Set<String>>([])

  /// Notes that something has happened. Always true, so that rules can end with it.
  @discardableResult
  func saw(_ work: String) -> Bool {
    self.seen.withLock { _ = $0.insert(work) }
    return true
  }

  /// Notes something if it has happened.
  func saw(_ work: String, if hasHappened: Bool) {
    if hasHappened { self.saw(work) }
  }

  func hasSeen(_ work: String) -> Bool { self.seen.withLock { $0.contains(work) } }
}
