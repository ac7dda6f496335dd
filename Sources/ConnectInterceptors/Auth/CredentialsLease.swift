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

/// Which token the present attempt of a call has shown. Set wherever a refresh ends, read on the call's executor.
final class ShownCredentials: Sendable {
  private let generation = Atomic<UInt64>(0)
  private let hasRetriedFlag = Atomic(false)

  /// The number of the token; 0 for none.
  var shown: UInt64 { self.generation.load(ordering: .acquiring) }

  /// Whether an attempt was made anew with another token.
  var hasRetried: Bool {
    get { self.hasRetriedFlag.load(ordering: .relaxed) }
    set { self.hasRetriedFlag.store(newValue, ordering: .relaxed) }
  }

  /// A wait that was given up may end later than the one that took its place, and must not undo that.
  func show(_ generation: UInt64) {
    self.generation.max(generation, ordering: .acquiringAndReleasing)
  }
}
