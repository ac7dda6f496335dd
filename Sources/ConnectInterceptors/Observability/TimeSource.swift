/// Any clock, read as the time since it was first looked at: opened once, so that a reading costs one call.
struct TimeSource: Sendable {
  private let elapsed: @Sendable () -> Duration

  init(_ clock: any Clock<Duration>) {
    self.init(opened: clock)
  }

  private init<Source: Clock>(opened clock: Source) where Source.Duration == Duration {
    let origin = clock.now
    self.elapsed = { origin.duration(to: clock.now) }
  }

  var now: Duration { self.elapsed() }
}
