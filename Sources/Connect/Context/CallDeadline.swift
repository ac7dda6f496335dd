/// When something has to be over.
public struct CallDeadline: Sendable {
  private let measure: @Sendable () -> Duration

  /// A deadline in so much time from now.
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

  /// What is left until then; less than zero once it has passed.
  public var remaining: Duration { self.measure().clamped }

  /// The same deadline moved, so that so much is left.
  func moved(toRemaining remaining: Duration) -> CallDeadline {
    let change = remaining.clamped - self.remaining
    return CallDeadline(measure: { self.remaining + change })
  }

  /// The one of two that comes first.
  func earlier(of other: CallDeadline?) -> CallDeadline {
    guard let other, other.remaining < self.remaining else { return self }
    return other
  }
}
