internal import Connect
internal import NIOCore

/// When to ping a peer from which nothing comes (gRFC A8). Events go in, decisions come out; it knows no clock.
///
/// The interval counts from the last byte that was received. Without streams nothing is sent, unless the configuration says
/// so; then a stream that starts after a longer silence pings at once.
struct HTTP2Keepalive {
  enum Decision: Equatable {
    /// Look again at this time.
    case look(NIODeadline)
    /// Ping, and look again at this time.
    case ping(thenLook: NIODeadline)
    /// Nothing until a stream starts.
    case rest
    /// The peer is gone.
    case giveUp
  }

  let interval: TimeAmount
  let timeout: TimeAmount
  let pingsWithoutStreams: Bool
  private var lastRead: NIODeadline
  private var pingedAt: NIODeadline?
  private(set) var isResting = false

  /// - Parameter slowdown: The factor by which the interval is longer than configured.
  init(_ configuration: HTTP2Configuration.Keepalive, slowdown: Int = 1, now: NIODeadline) {
    let interval = max(configuration.interval.clamped, HTTP2Configuration.Keepalive.shortestInterval)
    self.interval = TimeAmount((interval * max(slowdown, 1)).clamped)
    self.timeout = TimeAmount(configuration.timeout.clamped)
    self.pingsWithoutStreams = configuration.pingsWithoutStreams
    self.lastRead = now
  }

  /// When to look for the first time.
  var firstLook: NIODeadline { self.lastRead + self.interval }

  mutating func received(now: NIODeadline) {
    self.lastRead = now
    self.pingedAt = nil
  }

  /// The time of the last decision has come.
  mutating func look(now: NIODeadline, hasStreams: Bool) -> Decision {
    if let pingedAt = self.pingedAt {
      return now - pingedAt >= self.timeout ? .giveUp : .look(pingedAt + self.timeout)
    }
    let due = self.lastRead + self.interval
    guard due <= now else { return .look(due) }
    guard hasStreams || self.pingsWithoutStreams else {
      self.isResting = true
      return .rest
    }
    self.pingedAt = now
    return .ping(thenLook: now + self.timeout)
  }

  /// A stream starts after a rest.
  mutating func wake(now: NIODeadline) -> Decision {
    self.isResting = false
    return self.look(now: now, hasStreams: true)
  }
}
