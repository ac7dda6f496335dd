internal import Connect
internal import ConnectChannels
internal import NIOCore

/// How a connection finds out that its peer is gone.
struct HTTP3ConnectionCare: Sendable, Hashable {
  /// How long sent data may stay unacknowledged; nil for as long as QUIC tries.
  var unacknowledged: Duration? = .seconds(20)
  /// A ping is sent when nothing was sent or received for this time. With nil, pings are just frequent enough that the
  /// peers do not forget a connection with calls.
  var pingInterval: Duration?
  /// Whether to ping while no call is open, too.
  var pingsWithoutStreams = false
}

/// The one timer of a connection.
///
/// What libngtcp2 waits for changes with each packet, and mostly to later. A timer that is early does no harm: when it fires,
/// the next one is set.
struct HTTP3Timer {
  private var scheduled: Scheduled<Void>?
  private var time: UInt64 = .max

  /// - Parameter time: When `work` is to run at the latest; nil for never.
  mutating func set(to time: UInt64?, on eventLoop: any EventLoop, _ work: @escaping () -> Void) {
    guard let time else { return }
    guard time < self.time else { return }
    self.scheduled?.cancel()
    self.time = time
    let deadline = NIODeadline.uptimeNanoseconds(time)
    self.scheduled = eventLoop.assumeIsolated().scheduleTask(deadline: deadline) { work() }
  }

  mutating func didFire() {
    self.scheduled = nil
    self.time = .max
  }

  mutating func cancel() {
    self.scheduled?.cancel()
    self.didFire()
  }
}

/// Whether the peer may be gone, and what is done to find out.
struct HTTP3PeerWatch {
  /// Whether a call was given up while nothing was received.
  var isSuspect = false
  /// Whether a ping is due soon, since the peer is suspect.
  var isQuick = false
  /// Whether pings are on; nil if that is to be set again.
  var isPinging: Bool?
}

extension HTTP3Connection {
  /// How soon a connection that is suspect pings.
  private static let quickPing: UInt64 = 1_000_000
  private static let defaultLimit = Duration.seconds(20)

  /// When the peer is given up if nothing comes from it. A handshake has its own limit.
  private var giveUpTime: UInt64? {
    guard self.state == .active, !self.isShakingHands, let start = self.session.unansweredSince else {
      return nil
    }
    let limit = self.care.unacknowledged ?? (self.watch.isSuspect ? Self.defaultLimit : nil)
    return limit.map { start &+ UInt64(clamping: $0.clamped.nanoseconds) }
  }

  func updateTimer() {
    guard self.state == .active || self.state == .connecting else { return }
    let time = min(self.session.expiry ?? .max, self.giveUpTime ?? .max)
    self.timer.set(to: time == .max ? nil : time, on: self.eventLoop) { self.timerDidFire() }
  }

  private func timerDidFire() {
    self.timer.didFire()
    guard self.state == .active || self.state == .connecting else { return }
    let now = self.now
    if let giveUpTime = self.giveUpTime, giveUpTime <= now {
      let limit = self.care.unacknowledged ?? Self.defaultLimit
      self.reportUnfit("nothing was acknowledged for \(limit)")
      self.shutDown(
        ConnectError(
          code: .unavailable,
          message: "the HTTP/3 connection broke: \(self.peer) has acknowledged nothing for \(limit)"
        ),
        sending: .noError
      )
      return
    }
    if let expiry = self.session.expiry, expiry <= now { self.session.handleExpiry(now: now) }
    if self.session.ending != nil { self.endOfSession() } else { self.flush() }
  }

  /// Pings as often as the configuration says. While there are calls, pings often enough that neither side forgets the
  /// connection (RFC 9114, section 5.1).
  func updateKeepalive() {
    guard self.state == .active, !self.isShakingHands else { return }
    if self.watch.isQuick { return self.session.setKeepalive(Self.quickPing) }
    let isWanted = self.session.hasStreams || self.care.pingsWithoutStreams
    guard isWanted != self.watch.isPinging else { return }
    self.watch.isPinging = isWanted
    let configured = self.care.pingInterval.map { UInt64(clamping: $0.clamped.nanoseconds) }
    let needed = self.session.idleTimeout.map { $0 / 2 }
    self.session.setKeepalive(isWanted ? [configured, needed].compactMap { $0 }.min() : nil)
  }

  // MARK: Calls that are given up

  func callWasGivenUp(inSilenceSince answerCount: Int) {
    guard self.answerCount == answerCount, !self.watch.isSuspect, self.state == .active, !self.isShakingHands,
      !self.isDraining
    else { return }
    self.watch.isSuspect = true
    self.watch.isQuick = true
    self.updateKeepalive()
    self.delegate?.connectionIsSuspect(self)
    self.scheduleFlush()
  }

  /// One ping is enough: what is not acknowledged, libngtcp2 sends again by itself, ever more slowly (RFC 9002, section 6.2).
  func didProbe() {
    self.watch.isQuick = false
    self.watch.isPinging = nil
    self.updateKeepalive()
  }

  func peerHasAnswered() {
    self.watch.isSuspect = false
    self.watch.isQuick = false
    self.watch.isPinging = nil
    self.updateKeepalive()
    self.delegate?.connectionIsAlive(self)
  }
}

extension Duration {
  /// In whole nanoseconds, as many as fit.
  var nanoseconds: Int64 {
    let (seconds, attoseconds) = self.components
    let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    if overflow { return seconds < 0 ? .min : .max }
    let (sum, overflowOfSum) = whole.addingReportingOverflow(attoseconds / 1_000_000_000)
    return overflowOfSum ? .max : sum
  }
}
