internal import Synchronization

/// The tokens of [gRPC's retry
/// throttling](https://github.com/grpc/proposal/blob/master/A6-client-retries.md#throttling-retry-attempts-and-hedged-rpcs):
/// an attempt that fails takes one away, one that succeeds adds a fraction. There may be other attempts while more than half
/// of the tokens are left.
package struct RetryTokens: ~Copyable, Sendable {
  /// gRPC's precision.
  private static let unitsPerToken = 1000.0

  /// In thousandths of a token.
  private let maximum: Int
  private let gain: Int
  private let units: Atomic<Int>

  /// All tokens are there at first.
  ///
  /// - Parameters:
  ///   - maximum: From 1 to 1,000,000. Not-a-number counts as 1.
  ///   - ratio: What a success adds, in tokens; at least 0.001, which not-a-number counts as.
  package init(maximum: Double, ratio: Double) {
    // `max` gives its first argument where the second is not a number.
    self.maximum = Int(min(max(1, maximum), 1_000_000) * Self.unitsPerToken)
    self.gain = Int(min(max(0.001, ratio), 1_000_000) * Self.unitsPerToken)
    self.units = Atomic(self.maximum)
  }

  /// How many there are.
  package var count: Double { Double(self.units.load(ordering: .relaxed)) / Self.unitsPerToken }

  /// Whether more than half are left.
  package var allowRetry: Bool { self.units.load(ordering: .relaxed) > self.maximum / 2 }

  package func recordSuccess() {
    // Most often all are there: then nothing is written, so that threads do not get in each other's way.
    guard self.units.load(ordering: .relaxed) < self.maximum else { return }
    self.change { min(self.maximum, $0 + self.gain) }
  }

  /// - Returns: Whether more than half are left.
  package func recordFailure() -> Bool {
    self.change { max(0, $0 - Int(Self.unitsPerToken)) } > self.maximum / 2
  }

  /// - Returns: What it was changed to.
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
