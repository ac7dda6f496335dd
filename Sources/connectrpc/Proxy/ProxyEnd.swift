import Synchronization

/// When a server of this program ends: after a number of calls, or when it is interrupted.
final class ProxyEnd: Sendable {
  private let limit: Int?
  private let count = Atomic(0)
  private let ends: AsyncStream<Void>
  private let continuation: AsyncStream<Void>.Continuation

  /// - Parameter count: After how many calls; nil for any number.
  init(count: Int?) {
    self.limit = count
    (self.ends, self.continuation) = AsyncStream.makeStream()
  }

  func callDidEnd() {
    let count = self.count.add(1, ordering: .relaxed).newValue
    if count == self.limit { self.continuation.finish() }
  }

  func wait() async {
    let interrupt = Interrupt { self.continuation.finish() }
    for await _ in self.ends {}
    interrupt.stop()
  }
}
