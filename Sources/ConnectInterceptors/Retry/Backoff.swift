internal import Connect

#if canImport(Musl)
private import Musl
#else
private import Glibc
#endif

/// How long to wait before an attempt: exponential growth up to a cap, with full jitter.
///
/// The wait before retry *n* is drawn evenly from zero to `base × multiplier^(n-1)`, at most `maximum`. Drawing from
/// zero on spreads the retries of many clients over the whole interval, so that they don't arrive together.
public struct Backoff: Sendable, Hashable {
  /// The longest wait before the first retry.
  public var base: Duration
  /// By how much the longest wait grows from retry to retry; at least 1.
  public var multiplier: Double
  /// The upper bound of the longest wait.
  public var maximum: Duration

  /// A backoff as given: by default 100 ms, doubling up to 10 s. A multiplier of less than 1 counts as 1.
  public init(base: Duration = .milliseconds(100), multiplier: Double = 2, maximum: Duration = .seconds(10)) {
    self.base = base
    self.multiplier = max(1, multiplier)
    self.maximum = maximum
  }

  /// The longest wait before a retry.
  ///
  /// - Parameter retry: 1 for the first retry.
  public func longestDelay(beforeRetry retry: Int) -> Duration {
    let growth = pow(max(1, self.multiplier), Double(max(1, retry) - 1))
    return max(.zero, min(self.base.scaled(by: growth), self.maximum.clamped))
  }

  /// How long to wait before a retry.
  ///
  /// - Parameters:
  ///   - retry: 1 for the first retry.
  ///   - random: A number from 0 to 1, drawn for each wait.
  public func delay(beforeRetry retry: Int, random: Double = .random(in: 0...1)) -> Duration {
    self.longestDelay(beforeRetry: retry).scaled(by: min(1, max(0, random)))
  }
}
