internal import Connect

/// The time on a clock, as a duration since this value was made: so it can be kept and compared whatever the clock's type.
/// Clamped, so that computations with it do not overflow.
struct ElapsedTime: Sendable {
  private let read: @Sendable () -> Duration

  init(on clock: any Clock<Duration>) {
    self.read = Self.makeReader(clock)
  }

  var now: Duration { self.read() }

  private static func makeReader(_ clock: some Clock<Duration>) -> @Sendable () -> Duration {
    let start = clock.now
    return { start.duration(to: clock.now).clamped }
  }
}
