internal import Connect
internal import Synchronization

/// Which token the present attempt of a call shows, and in which headers. Set wherever a refresh or a signature ends,
/// read on the call's executor.
final class ShownCredentials: Sendable {
  private struct State {
    var attempt = 0
    /// The number of the token that the present attempt shows; 0 for none.
    var generation: UInt64 = 0
    /// The number of the token that the call has shown first; 0 for none.
    var firstGeneration: UInt64 = 0
    /// The headers added by the last attempt that showed a token. Kept, since its request may come back at any time.
    var last: (generation: UInt64, headers: Headers) = (0, Headers())
    var hasRetried = false
    var signing: Task<Void, Never>?
  }

  private let state = Mutex(State())

  /// The number of the token; 0 for none.
  var generation: UInt64 { self.state.withLock { $0.generation } }

  /// The number of the token that the call has shown first, in whichever attempt; 0 for none. It identifies the user.
  var firstGeneration: UInt64 { self.state.withLock { $0.firstGeneration } }

  /// Whether the call was retried with another token.
  var hasRetried: Bool {
    get { self.state.withLock { $0.hasRetried } }
    set { self.state.withLock { $0.hasRetried = newValue } }
  }

  /// An attempt begins.
  ///
  /// - Parameter headers: The headers of the attempt's request.
  /// - Returns: The attempt's number, and the headers that already show the token: an interceptor inside may send such a
  ///   request again.
  func begin(_ headers: Headers) -> (attempt: Int, shown: Headers) {
    self.state.withLock { state in
      state.attempt += 1
      let last = state.last
      let isShown =
        !last.headers.isEmpty
        && last.headers.allSatisfy { field in
          headers.contains { $0.name == field.name && $0.value == field.value }
        }
      state.generation = isShown ? last.generation : 0
      return (state.attempt, isShown ? last.headers : Headers())
    }
  }

  /// The headers that show the token were taken out of the request of an attempt.
  func hide(in attempt: Int) {
    self.state.withLock { state in
      guard state.attempt == attempt else { return }
      state.generation = 0
    }
  }

  /// The request of an attempt has headers that show a token. Has no effect if the next attempt has begun: an abandoned
  /// wait may end later.
  func show(_ headers: Headers, of generation: UInt64, in attempt: Int) {
    self.state.withLock { state in
      guard state.attempt == attempt else { return }
      state.generation = generation
      state.last = (generation, headers)
      if state.firstGeneration == 0 { state.firstGeneration = generation }
    }
  }

  // MARK: Signing

  /// Keeps the task that signs the request of an attempt, to be cancelled with it.
  func keep(_ task: Task<Void, Never>, of attempt: Int) {
    let isLate = self.state.withLock { state in
      guard state.attempt == attempt else { return true }
      state.signing = task
      return false
    }
    if isLate { task.cancel() }
  }

  /// The call is over: a signature that ends now is too late.
  func end() {
    let signing = self.state.withLock { state in
      state.attempt += 1
      return state.signing.take()
    }
    signing?.cancel()
  }

  func cancelSigning() {
    self.state.withLock { $0.signing.take() }?.cancel()
  }
}
