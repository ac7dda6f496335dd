internal import DequeModule

/// Hands a stream's results to whoever waits for them, and asks the call for one at a time.
///
/// Confined to the call's executor.
final class ResultQueue {
  typealias Continuation = UnsafeContinuation<ResultPart?, Never>

  private var results: Deque<ResultPart> = []
  private var waiting: Deque<Continuation> = []
  /// How many results were requested from the call and have not arrived yet.
  private var askedCount = 0
  private var isComplete = false

  func receive(_ result: ResultPart) {
    self.askedCount -= 1
    if let first = self.waiting.popFirst() {
      first.resume(returning: result)
    } else {
      self.results.append(result)
    }
    guard result.isEnd else { return }
    self.isComplete = true
    while let next = self.waiting.popFirst() { next.resume(returning: nil) }
  }

  /// The next result, if it can be had without waiting and nobody else waits for it.
  func poll(_ side: StreamSide, _ call: Call) -> ResultPart? {
    guard self.waiting.isEmpty else { return nil }
    if self.results.isEmpty, !self.isComplete { self.ask(for: 1, side, call) }
    return self.results.popFirst()
  }

  /// Gives the next result to `continuation`; nil behind the end.
  func wait(_ continuation: Continuation, _ side: StreamSide, _ call: Call) {
    if let result = self.results.popFirst() {
      continuation.resume(returning: result)
    } else if self.isComplete {
      continuation.resume(returning: nil)
    } else {
      self.waiting.append(continuation)
      self.ask(for: self.waiting.count, side, call)
    }
  }

  private func ask(for count: Int, _ side: StreamSide, _ call: Call) {
    guard self.askedCount < count else { return }
    self.askedCount += 1
    side.request(1, call)
  }
}
