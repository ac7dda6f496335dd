/// The time when a call, or the work that it is part of, has to be over.
public struct CallDeadline: Sendable {
  private let measure: @Sendable () -> Duration

  /// A deadline `duration` from now.
  public init(in duration: Duration, clock: any Clock<Duration> = ContinuousClock()) {
    self.init(in: duration, opened: clock)
  }

  private init(measure: @escaping @Sendable () -> Duration) {
    self.measure = measure
  }

  private init<Source: Clock>(in duration: Duration, opened clock: Source) where Source.Duration == Duration {
    self.init(clock.now.advanced(by: duration.clamped), clock: clock)
  }

  /// A deadline at an instant of a clock.
  public init<Source: Clock>(_ instant: Source.Instant, clock: Source) where Source.Duration == Duration {
    self.measure = { clock.now.duration(to: instant) }
  }

  /// The time that is left; negative once the deadline has passed.
  public var remaining: Duration { self.measure().clamped }

  /// The deadline moved, so that `remaining` is left.
  func moved(toRemaining remaining: Duration) -> CallDeadline {
    let change = remaining.clamped - self.remaining
    return CallDeadline(measure: { self.remaining + change })
  }

  /// The earlier of the two deadlines.
  func earlier(of other: CallDeadline?) -> CallDeadline {
    guard let other, other.remaining < self.remaining else { return self }
    return other
  }
}
