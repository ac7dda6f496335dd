internal import Synchronization

/// A number that calls of one client share.
final class Counter: Sendable {
  private let state = Mutex(0)

  var value: Int { self.state.withLock { $0 } }

  func add(_ amount: Int = 1) { self.state.withLock { $0 += amount } }
}
