internal import Connect
internal import Synchronization

/// Which token the present attempt of a call shows, and in which headers. Set wherever a refresh or a signature ends,
/// read on the call's executor.
final class ShownCredentials: Sendable {
  private struct State {
    var attempt = 0
    var generation: UInt64 = 0
    var headers = Headers()
    var hasRetried = false
    var signing: Task<Void, Never>?
  }

  private let state = Mutex(State())

  /// The number of the token; 0 for none.
  var generation: UInt64 { self.state.withLock { $0.generation } }

  /// Whether an attempt was made anew with another token.
  var hasRetried: Bool {
    get { self.state.withLock { $0.hasRetried } }
    set { self.state.withLock { $0.hasRetried = newValue } }
  }

  /// An attempt begins.
  ///
  /// - Parameter headers: Those of its request.
  /// - Returns: Its number, and the names of the headers that show the token already: an interceptor inside may send the
  ///   request again that has them.
  func begin(_ headers: Headers) -> (attempt: Int, shownNames: [String]) {
    self.state.withLock { state in
      state.attempt += 1
      let isShown =
        state.generation > 0
        && state.headers.allSatisfy { field in
          headers.contains { $0.name == field.name && $0.value == field.value }
        }
      if isShown { return (state.attempt, state.headers.map(\.name)) }
      state.generation = 0
      state.headers = Headers()
      return (state.attempt, [])
    }
  }

  /// The request of an attempt has headers that show a token. A wait that was given up may end later than the next attempt
  /// began, and must not undo that.
  func show(_ headers: Headers, of generation: UInt64, in attempt: Int) {
    self.state.withLock { state in
      guard state.attempt == attempt else { return }
      state.generation = generation
      state.headers = headers
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

  func cancelSigning() {
    self.state.withLock { $0.signing.take() }?.cancel()
  }
}
