internal import Connect

#if canImport(Musl)
private import Musl
#else
private import Glibc
#endif

/// The time of day, for what outlives a process or is agreed upon with a server: the expiry of a stored token, of a cookie.
/// Clocks such as `ContinuousClock` begin again with the machine, so they cannot tell that.
public struct WallClock: Sendable {
  private let read: @Sendable () -> Duration

  /// A clock for tests, or of another source of time.
  ///
  /// - Parameter now: The time since 1970-01-01 00:00 UTC, without leap seconds. May be called on any thread, and must not
  ///   block.
  public init(_ now: @escaping @Sendable () -> Duration) {
    self.read = now
  }

  /// The system's clock, `CLOCK_REALTIME`.
  public static let system = WallClock {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
  }

  /// The time since 1970-01-01 00:00 UTC; at most 100 years.
  public var now: Duration { self.read().clamped }
}
