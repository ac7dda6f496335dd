import Synchronization

/// Values that callbacks have received, for a test that waits for them.
final class Received<Value: Sendable>: Sendable {
  private struct State {
    var values: [Value] = []
    var waiting: [(count: Int, continuation: CheckedContinuation<[Value], Never>)] = []
  }

  private let state = Mutex(State())

  var values: [Value] { self.state.withLock { $0.values } }

  func add(_ value: Value) {
    let (ready, values) = self.state.withLock { state in
      state.values.append(value)
      let count = state.values.count
      let ready = state.waiting.filter { $0.count <= count }
      state.waiting.removeAll { $0.count <= count }
      return (ready, state.values)
    }
    for waiting in ready { waiting.continuation.resume(returning: values) }
  }

  /// Waits until there are `count` values.
  func first(_ count: Int) async -> [Value] {
    await withCheckedContinuation { continuation in
      let values: [Value]? = self.state.withLock { state in
        guard state.values.count < count else { return state.values }
        state.waiting.append((count, continuation))
        return nil
      }
      if let values { continuation.resume(returning: values) }
    }
  }
}
