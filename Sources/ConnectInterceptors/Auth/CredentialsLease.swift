internal import Connect
internal import Synchronization

/// A token as one attempt of a call shows it.
struct CredentialsLease: Sendable, CustomStringConvertible, CustomReflectable {
  /// Counts the tokens, from 1.
  let generation: UInt64
  /// Scheme and token.
  let headerValue: String

  var description: String { "CredentialsLease(generation: \(self.generation))" }
  var customMirror: Mirror { Mirror(self, children: ["generation": self.generation]) }
}

/// Which token the present attempt of a call shows. Set wherever a refresh ends, read on the call's executor.
final class ShownCredentials: Sendable {
  private struct State {
    var attempt = 0
    var lease: CredentialsLease?
    var hasRetried = false
  }

  private let state = Mutex(State())

  /// The number of the token; 0 for none.
  var shown: UInt64 { self.state.withLock { $0.lease?.generation ?? 0 } }

  /// Whether an attempt was made anew with another token.
  var hasRetried: Bool {
    get { self.state.withLock { $0.hasRetried } }
    set { self.state.withLock { $0.hasRetried = newValue } }
  }

  /// An attempt begins.
  ///
  /// - Parameter headerValue: What its request has in the token's header.
  /// - Returns: Its number.
  func begin(headerValue: String?) -> Int {
    self.state.withLock { state in
      state.attempt += 1
      // An interceptor inside may send the request again that has the token.
      if state.lease?.headerValue != headerValue { state.lease = nil }
      return state.attempt
    }
  }

  /// A wait that was given up may end later than the next attempt began, and must not undo that.
  func show(_ lease: CredentialsLease, in attempt: Int) {
    self.state.withLock { if $0.attempt == attempt { $0.lease = lease } }
  }
}
