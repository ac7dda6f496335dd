internal import Synchronization

/// A value that comes once, whoever brings it first, and that one task waits for.
final class OneShot<Value: Sendable>: Sendable {
  private enum State {
    case empty
    case waiting(CheckedContinuation<Value, Never>)
    case full(Value)
    case taken
  }

  private let state = Mutex(State.empty)

  /// - Returns: Whether this was the first value. The others are dropped.
  @discardableResult
  func put(_ value: Value) -> Bool {
    let (isFirst, waiter) = self.state.withLock { state -> (Bool, CheckedContinuation<Value, Never>?) in
      switch state {
      case .empty:
        state = .full(value)
        return (true, nil)
      case .waiting(let continuation):
        state = .taken
        return (true, continuation)
      case .full, .taken:
        return (false, nil)
      }
    }
    waiter?.resume(returning: value)
    return isFirst
  }

  /// A callback that brings the value, and reports if it is called again.
  func callback(_ invariants: Invariants) -> @Sendable (Value) -> Void {
    { value in
      if !self.put(value) { invariants.report("a callback was called twice") }
    }
  }

  /// The value. Call it once.
  func value() async -> Value {
    await withCheckedContinuation { continuation in
      let value = self.state.withLock { state -> Value? in
        if case .full(let value) = state {
          state = .taken
          return value
        }
        state = .waiting(continuation)
        return nil
      }
      if let value { continuation.resume(returning: value) }
    }
  }
}
