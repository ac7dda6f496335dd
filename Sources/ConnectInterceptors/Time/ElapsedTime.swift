internal import Connect

/// The time on a clock, as a duration since this value was made: so it can be kept and compared whatever the clock's type.
/// It stays within what can be computed with, whatever the clock says.
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
