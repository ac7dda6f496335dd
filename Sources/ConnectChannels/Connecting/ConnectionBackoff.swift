internal import Connect

/// How long to wait between attempts to connect, or to resolve a name: gRPC's rule
/// (https://github.com/grpc/grpc/blob/master/doc/connection-backoff.md).
///
/// For connections the time counts from the start of an attempt to the start of the next one. Jitter keeps clients
/// apart that have lost the same server.
package struct ConnectionBackoff: Sendable, Hashable {
  package struct Configuration: Sendable, Hashable {
    /// The time after the first failure.
    package var initial: Duration
    /// By how much the time grows with each failure; at least 1.
    package var multiplier: Double
    /// The longest time, before jitter.
    package var maximum: Duration
    /// Which part of the time is random: 0.2 is from 20 % less to 20 % more. From 0 to 1.
    package var jitter: Double
    /// How long one attempt may take at least.
    package var minimumAttempt: Duration

    package init(
      initial: Duration = .seconds(1),
      multiplier: Double = 1.6,
      maximum: Duration = .seconds(120),
      jitter: Double = 0.2,
      minimumAttempt: Duration = .seconds(20)
    ) {
      self.initial = max(initial.clamped, .zero)
      // Not-a-number counts as 1.
      self.multiplier = multiplier > 1 ? multiplier : 1
      self.maximum = max(maximum.clamped, self.initial)
      self.jitter = jitter > 0 ? min(jitter, 1) : 0
      self.minimumAttempt = max(minimumAttempt.clamped, .zero)
    }

    /// 1 s, times 1.6 up to 120 s, with a jitter of 20 %; 20 s for an attempt.
    package static var defaults: Configuration { Configuration() }
  }

  package let configuration: Configuration
  private var base: Duration

  package init(_ configuration: Configuration = .defaults) {
    self.configuration = configuration
    self.base = configuration.initial
  }

  /// The time from the start of an attempt until the next one may start, if it fails.
  package mutating func next(random: inout SeededRandom) -> Duration {
    self.next(share: random.fraction())
  }

  /// The same with the random number for the jitter, from 0 to 1.
  package mutating func next(share: Double) -> Duration {
    let base = self.base
    self.base = min(base.scaled(by: self.configuration.multiplier), self.configuration.maximum)
    return base.scaled(by: 1 + self.configuration.jitter * (2 * share - 1))
  }

  /// A connection was ready: the next failure is the first one.
  package mutating func reset() {
    self.base = self.configuration.initial
  }

  /// How long an attempt may take if `delay` is the time until the next attempt.
  package func timeLimit(before delay: Duration) -> Duration {
    max(delay, self.configuration.minimumAttempt)
  }
}
