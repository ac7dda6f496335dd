public import Connect

/// Keeps retries from making an outage worse: one for all calls of a client, shared by its interceptors.
///
/// It starts full of tokens. An attempt that fails removes a token; an attempt that succeeds adds a fraction of one. A
/// response from a cache adds nothing.
/// There are retries only while more than half of the tokens are left; so a server that fails everything soon gets no
/// more than the calls themselves. It is [gRPC's retry
/// throttling](https://github.com/grpc/proposal/blob/master/A6-client-retries.md#throttling-retry-attempts-and-hedged-rpcs).
///
/// With the defaults there are no retries left after five failures in a row, and about one call in eleven may fail
/// before there are none. A client whose many calls may lose a connection together needs more tokens.
public final class RetryBudget: AttemptBudget {
  private let all: RetryTokens

  /// A full budget.
  ///
  /// - Parameters:
  ///   - maximumTokens: From 1 to 1,000,000. Not-a-number counts as 1.
  ///   - tokenRatio: What a success adds, in tokens; at least 0.001. Not-a-number counts as 0.001.
  public init(maximumTokens: Double = 10, tokenRatio: Double = 0.1) {
    self.all = RetryTokens(maximum: maximumTokens, ratio: tokenRatio)
  }

  /// How many tokens there are.
  public var tokens: Double { self.all.count }

  /// Whether there may be retries.
  public var allowsRetry: Bool { self.all.allowRetry }

  /// Records an attempt that succeeded.
  public func recordSuccess() { self.all.recordSuccess() }

  /// Records an attempt that failed in a way that says that the server is in trouble.
  ///
  /// - Returns: Whether this attempt may be followed by another.
  @discardableResult
  public func recordFailure() -> Bool { self.all.recordFailure() }
}
