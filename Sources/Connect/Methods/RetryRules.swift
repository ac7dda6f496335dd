/// A service's rules for retries of a method's calls (gRFC A6). ``RetryRulesFollowing`` interceptors follow them.
package final class RetryRules: Sendable {
  /// Includes the first attempt.
  package let maximumAttempts: Int
  /// The codes of errors after which another attempt may succeed.
  package let codes: Set<Code>
  /// Records the end of each attempt; shared by the calls of a channel. Nil without throttling.
  package let throttle: RetryBudget?
  private let initialBackoff: Duration
  private let maximumBackoff: Duration
  private let backoffMultiplier: Double

  package init(
    maximumAttempts: Int,
    initialBackoff: Duration,
    maximumBackoff: Duration,
    backoffMultiplier: Double,
    codes: Set<Code>,
    throttle: RetryBudget? = nil
  ) {
    self.maximumAttempts = maximumAttempts
    self.initialBackoff = max(initialBackoff.clamped, .zero)
    self.maximumBackoff = max(maximumBackoff.clamped, .zero)
    self.backoffMultiplier = backoffMultiplier
    self.codes = codes
    self.throttle = throttle
  }

  /// No retries.
  package static let noRetries = RetryRules(
    maximumAttempts: 1,
    initialBackoff: .zero,
    maximumBackoff: .zero,
    backoffMultiplier: 1,
    codes: []
  )

  /// The wait before a retry: at random from zero to `min(initialBackoff × backoffMultiplier^(retry-1), maximumBackoff)`.
  ///
  /// - Parameters:
  ///   - retry: 1 for the first retry.
  ///   - random: A number from 0 to 1, drawn for each wait.
  package func delay(beforeRetry retry: Int, random: Double = .random(in: 0...1)) -> Duration {
    var longest = self.initialBackoff
    // Attempts are few; see ``maximumAttempts``.
    for _ in 0..<min(max(retry - 1, 0), 100) { longest = longest.scaled(by: self.backoffMultiplier) }
    return max(min(longest, self.maximumBackoff), .zero).scaled(by: min(1, max(0, random)))
  }
}

/// Interceptors that retry calls by the service's ``RetryRules``, which the request carries.
package protocol RetryRulesFollowing {}
