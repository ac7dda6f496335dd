internal import Synchronization

/// How many calls live on an executor, for a client that has several.
final class CallLoad: Sendable {
  private let calls = Atomic(0)

  var count: Int { self.calls.load(ordering: .relaxed) }

  func callBegan() { self.calls.add(1, ordering: .relaxed) }
  func callEnded() { self.calls.subtract(1, ordering: .relaxed) }
}
