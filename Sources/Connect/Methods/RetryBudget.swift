internal import Synchronization

/// Keeps retries and hedges from making an outage worse: one for all calls of a client, shared by its interceptors and its
/// ``HedgingPolicy``.
///
/// It starts full of tokens. An attempt that fails removes a token; an attempt that succeeds adds a fraction of one. A
/// response from a cache adds nothing.
/// There are further attempts only while more than half of the tokens are left; so a server that fails everything soon gets
/// no more than the calls themselves. It is [gRPC's retry
/// throttling](https://github.com/grpc/proposal/blob/master/A6-client-retries.md#throttling-retry-attempts-and-hedged-rpcs).
///
/// With the defaults there are no retries left after five failures in a row, and about one call in eleven may fail
/// before there are none. A client whose many calls may lose a connection together needs more tokens.
public final class RetryBudget: Sendable {
  /// gRPC's precision.
  private static let unitsPerToken = 1000.0

  /// In thousandths of a token.
  private let maximum: Int
  private let gain: Int
  private let units: Atomic<Int>

  /// A full budget.
  ///
  /// - Parameters:
  ///   - maximumTokens: From 1 to 1,000,000. Not-a-number counts as 1.
  ///   - tokenRatio: What a success adds, in tokens; at least 0.001. Not-a-number counts as 0.001.
  public init(maximumTokens: Double = 10, tokenRatio: Double = 0.1) {
    // `max` gives its first argument where the second is not a number.
    self.maximum = Int(min(max(1, maximumTokens), 1_000_000) * Self.unitsPerToken)
    self.gain = Int(min(max(0.001, tokenRatio), 1_000_000) * Self.unitsPerToken)
    self.units = Atomic(self.maximum)
  }

  /// How many tokens there are.
  public var tokens: Double { Double(self.units.load(ordering: .relaxed)) / Self.unitsPerToken }

  /// Whether there may be another attempt.
  public var allowsRetry: Bool { self.units.load(ordering: .relaxed) > self.maximum / 2 }

  /// Records an attempt that succeeded.
  public func recordSuccess() {
    // Most often no token is missing. Then nothing is written, so that threads do not contend.
    guard self.units.load(ordering: .relaxed) < self.maximum else { return }
    self.change { min(self.maximum, $0 + self.gain) }
  }

  /// Records an attempt that failed in a way that says that the server is in trouble.
  ///
  /// - Returns: Whether this attempt may be followed by another.
  @discardableResult
  public func recordFailure() -> Bool {
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
