internal import Connect
internal import Synchronization

/// Hands what a stream calls back with to one reader, and reports what must not come.
final class CallbackQueue<Output: Sendable>: Sendable {
  private struct State {
    var results: [StreamResult<Output>] = []
    var reader: CheckedContinuation<StreamResult<Output>?, Never>?
    /// Whether one result was asked for that has not come.
    var isAsked = false
    var hasEnded = false
  }

  private let state = Mutex(State())
  private let invariants: Invariants

  init(_ invariants: Invariants) {
    self.invariants = invariants
  }

  func receive(_ result: StreamResult<Output>) {
    let (reader, broken) = self.state.withLock { state in
      var broken: String?
      if state.hasEnded { broken = "the stream called back after its end" }
      if case .complete = result {
        // The end may come unasked: the deadline has passed, or the call was cancelled.
        state.hasEnded = true
      } else if !state.isAsked {
        broken = broken ?? "a result came that was not asked for"
      }
      state.isAsked = false
      let reader = state.reader
      state.reader = nil
      if reader == nil { state.results.append(result) }
      return (reader, broken)
    }
    if let broken { self.invariants.report(broken) }
    reader?.resume(returning: result)
  }

  /// Whether the stream has to be asked for the result that ``next()`` is to give.
  func mustAsk() -> Bool {
    self.state.withLock { state in
      guard state.results.isEmpty, !state.hasEnded, !state.isAsked else { return false }
      state.isAsked = true
      return true
    }
  }

  /// The next result; nil behind the end. For one reader at a time.
  func next() async -> StreamResult<Output>? {
    await withCheckedContinuation { continuation in
      let result = self.state.withLock { state -> StreamResult<Output>?? in
        if !state.results.isEmpty { return state.results.removeFirst() }
        if state.hasEnded { return .some(nil) }
        state.reader = continuation
        return nil
      }
      if let result { continuation.resume(returning: result) }
    }
  }
}
