/// The time of any clock, as what has passed since this was made.
struct ElapsedTime: Sendable {
  private let read: @Sendable () -> Duration

  init(of clock: any Clock<Duration>) {
    self.read = Self.reader(of: clock)
  }

  var now: Duration { self.read() }

  private static func reader(of clock: some Clock<Duration>) -> @Sendable () -> Duration {
    let start = clock.now
    return { start.duration(to: clock.now) }
  }
}
