internal import Synchronization

/// At most so many calls at once. The others wait, first come, first served.
final class CallLimit: Sendable {
  private struct State {
    var free: Int
    var waiters: [CheckedContinuation<Void, Never>] = []
  }

  private let state: Mutex<State>

  init(_ limit: Int) {
    self.state = Mutex(State(free: limit))
  }

  /// How many calls may begin at once.
  var free: Int { self.state.withLock { $0.free } }

  func acquire() async {
    await withCheckedContinuation { continuation in
      let isFree = self.state.withLock { state in
        guard state.free > 0 else {
          state.waiters.append(continuation)
          return false
        }
        state.free -= 1
        return true
      }
      if isFree { continuation.resume() }
    }
  }

  func release() {
    let next = self.state.withLock { state -> CheckedContinuation<Void, Never>? in
      guard state.waiters.isEmpty else { return state.waiters.removeFirst() }
      state.free += 1
      return nil
    }
    next?.resume()
  }
}
