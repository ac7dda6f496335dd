/// Reads the time on any clock.
struct Stopwatch: Sendable {
  private let read: @Sendable () -> Duration

  /// Starts now.
  init(_ clock: any Clock<Duration>) {
    self.read = Self.reader(clock)
  }

  /// The time since the start.
  var elapsed: Duration { self.read() }

  private static func reader<C: Clock<Duration>>(_ clock: C) -> @Sendable () -> Duration {
    let start = clock.now
    return { start.duration(to: clock.now) }
  }
}
