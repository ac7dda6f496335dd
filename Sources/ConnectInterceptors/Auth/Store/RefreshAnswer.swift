internal import Connect
internal import Synchronization

/// What a refresh waits for: the provider's token or error, or the end of the refresh before it.
final class RefreshAnswer: Sendable {
  /// Nil if the refresh has ended without the provider.
  typealias Value = Result<AccessToken, ConnectError>?

  private enum State {
    case idle
    case waiting(CheckedContinuation<Value, Never>)
    case given(Value)
  }

  private let state = Mutex(State.idle)

  /// Has no effect after the first time.
  func give(_ value: Value) {
    let waiting = self.state.withLock { state -> CheckedContinuation<Value, Never>? in
      switch state {
      case .given:
        return nil
      case .waiting(let continuation):
        state = .given(value)
        return continuation
      case .idle:
        state = .given(value)
        return nil
      }
    }
    waiting?.resume(returning: value)
  }

  /// Waits for the answer. To be called once.
  var value: Value {
    get async {
      await withCheckedContinuation { continuation in
        let given = self.state.withLock { state -> Value? in
          if case .given(let value) = state { return .some(value) }
          state = .waiting(continuation)
          return nil
        }
        if let given { continuation.resume(returning: given) }
      }
    }
  }
}
