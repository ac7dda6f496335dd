internal import Synchronization

/// The tokens of [gRPC's retry
/// throttling](https://github.com/grpc/proposal/blob/master/A6-client-retries.md#throttling-retry-attempts-and-hedged-rpcs):
/// a failed attempt takes one token away, a successful attempt adds a fraction. Further attempts are allowed while more
/// than half of the tokens are left.
package struct RetryTokens: ~Copyable, Sendable {
  /// gRPC's precision.
  private static let unitsPerToken = 1000.0

  /// In thousandths of a token.
  private let maximum: Int
  private let gain: Int
  private let units: Atomic<Int>

  /// Starts with all tokens.
  ///
  /// - Parameters:
  ///   - maximum: From 1 to 1,000,000. Not-a-number counts as 1.
  ///   - ratio: What a success adds, in tokens; at least 0.001. Not-a-number counts as 0.001.
  package init(maximum: Double, ratio: Double) {
    // `max` gives its first argument where the second is not a number.
    self.maximum = Int(min(max(1, maximum), 1_000_000) * Self.unitsPerToken)
    self.gain = Int(min(max(0.001, ratio), 1_000_000) * Self.unitsPerToken)
    self.units = Atomic(self.maximum)
  }

  /// The number of tokens left.
  package var count: Double { Double(self.units.load(ordering: .relaxed)) / Self.unitsPerToken }

  /// Whether more than half of the tokens are left.
  package var allowRetry: Bool { self.units.load(ordering: .relaxed) > self.maximum / 2 }

  package func recordSuccess() {
    // Most often no token is missing. Then nothing is written, so that threads do not contend.
    guard self.units.load(ordering: .relaxed) < self.maximum else { return }
    self.change { min(self.maximum, $0 + self.gain) }
  }

  /// - Returns: Whether more than half are left.
  package func recordFailure() -> Bool {
    self.change { max(0, $0 - Int(Self.unitsPerToken)) } > self.maximum / 2
  }

  /// - Returns: The new value.
  @discardableResult
  private func change(_ change: (Int) -> Int) -> Int {
    var old = self.units.load(ordering: .relaxed)
    while true {
      let new = change(old)
      let outcome = self.units.weakCompareExchange(expected: old, desired: new, ordering: .relaxed)
      if outcome.exchanged { return new }
      old = outcome.original
    }
  }
}
