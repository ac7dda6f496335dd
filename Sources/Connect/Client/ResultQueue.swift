internal import DequeModule

/// Hands a stream's results to whoever waits for them, and asks the call for one at a time.
///
/// Confined to the call's executor, which makes it `Sendable`.
final class ResultQueue<Output: Sendable>: @unchecked Sendable {
  private var results: Deque<StreamResult<Output>> = []
  private var waiting: Deque<UnsafeContinuation<StreamResult<Output>?, Never>> = []
  private var isComplete = false
  /// Whether there is nothing to be had here, and nobody waits for it.
  private(set) var isIdle = true

  func receive(_ result: StreamResult<Output>) {
    if let first = self.waiting.popFirst() {
      first.resume(returning: result)
    } else {
      self.results.append(result)
    }
    self.isIdle = self.results.isEmpty && self.waiting.isEmpty
    guard case .complete = result else { return }
    self.isComplete = true
    while let next = self.waiting.popFirst() { next.resume(returning: nil) }
  }

  /// Gives the next result to `continuation`; nil behind the end.
  ///
  /// - Returns: Whether the call has to bring one more.
  func wait(_ continuation: UnsafeContinuation<StreamResult<Output>?, Never>) -> Bool {
    defer { self.isIdle = self.results.isEmpty && self.waiting.isEmpty }
    if let result = self.results.popFirst() {
      continuation.resume(returning: result)
      return false
    }
    guard !self.isComplete else {
      continuation.resume(returning: nil)
      return false
    }
    self.waiting.append(continuation)
    return true
  }
}
