internal import Connect
internal import Synchronization

/// A value that changes, and that can be waited for.
package final class Observed<Value: Sendable>: Sendable {
  private struct State {
    var value: Value
    var version = 0
    var nextWaiter = 0
    var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
  }

  private let state: Mutex<State>

  package init(_ value: Value) {
    self.state = Mutex(State(value: value))
  }

  package var value: Value { self.state.withLock { $0.value } }

  package func update<Result: Sendable>(_ change: (inout Value) -> Result) -> Result {
    let (result, waiters) = self.state.withLock { state in
      let result = change(&state.value)
      state.version += 1
      let waiters = Array(state.waiters.values)
      state.waiters = [:]
      return (result, waiters)
    }
    for waiter in waiters { waiter.resume() }
    return result
  }

  /// Waits until `condition` returns a result for the value.
  ///
  /// - Parameter limit: How long to wait at most, in real time.
  /// - Returns: The result; nil if that took too long, or if the task was cancelled.
  package func wait<Result: Sendable>(
    within limit: Duration,
    until condition: @escaping @Sendable (Value) -> Result?
  ) async -> Result? {
    if let result = condition(self.value) { return result }
    return await withTaskGroup(of: Result?.self) { group in
      group.addTask {
        while !Task.isCancelled {
          let (value, version) = self.state.withLock { ($0.value, $0.version) }
          if let result = condition(value) { return result }
          await self.change(after: version)
        }
        return nil
      }
      group.addTask {
        try? await Task.sleep(for: limit.clamped)
        return nil
      }
      let first = await group.next() ?? nil
      group.cancelAll()
      return first
    }
  }

  /// Returns once something has changed since `version`, or when the task is cancelled.
  private func change(after version: Int) async {
    let id = self.state.withLock { state in
      state.nextWaiter += 1
      return state.nextWaiter
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isLate = self.state.withLock { state in
          if state.version != version || Task.isCancelled { return true }
          state.waiters[id] = continuation
          return false
        }
        if isLate { continuation.resume() }
      }
    } onCancel: {
      self.state.withLock { $0.waiters.removeValue(forKey: id) }?.resume()
    }
  }
}
