import Synchronization

/// When a server of this program ends: after a number of calls, or when it is interrupted.
final class ProxyEnd: Sendable {
  private let limit: Int?
  private let count = Atomic(0)
  private let ends: AsyncStream<Void>
  private let continuation: AsyncStream<Void>.Continuation
  // Never stopped: a signal that comes while the cassette is written must not end the program.
  private let interrupt: Interrupt

  /// Signals are handled from here on, so it comes before the server says where it listens.
  ///
  /// - Parameter count: After how many calls; nil for any number.
  init(count: Int?) {
    self.limit = count
    let (ends, continuation) = AsyncStream<Void>.makeStream()
    (self.ends, self.continuation) = (ends, continuation)
    self.interrupt = Interrupt { continuation.finish() }
  }

  /// Whether the number of calls is reached.
  var isReached: Bool { self.limit.map { self.count.load(ordering: .relaxed) >= $0 } ?? false }

  func callDidEnd() {
    let count = self.count.add(1, ordering: .relaxed).newValue
    if count == self.limit { self.continuation.finish() }
  }

  func wait() async {
    for await _ in self.ends {}
  }
}
