internal import Connect
internal import ConnectChannels
internal import ConnectNIO

/// How a connection finds out that its peer is gone.
struct HTTP3Keepalive: Sendable, Hashable {
  /// How long sent data may stay unacknowledged; nil for as long as QUIC tries.
  var unacknowledged: Duration? = .seconds(20)
  /// A ping is sent when nothing was sent or received for this time. With nil, pings are just frequent enough that the
  /// peers do not forget a connection with calls.
  var pingInterval: Duration?
  /// Whether to ping while no call is open, too.
  var pingsWithoutStreams = false
}

/// Finds out whether the peer of a connection is still there, with pings and by what stays unacknowledged.
///
/// Confined to the connection's event loop.
final class HTTP3PeerWatch {
  /// How soon a connection that is suspect pings, in nanoseconds.
  private static let quickPing: UInt64 = 1_000_000
  private static let defaultLimit = Duration.seconds(20)

  private let configuration: HTTP3Keepalive
  private let session: HTTP3Session
  private let handshake: HTTP3Handshake
  weak var connection: HTTP3Connection?

  /// How often something was received that certainly comes from the peer.
  private(set) var answerCount = 0
  /// Whether a call was given up while nothing was received.
  private var isSuspect = false
  /// Whether a ping is due soon, since the peer is suspect.
  private var isQuick = false
  /// Whether pings are on; nil if that is to be set again.
  private var isPinging: Bool?

  init(_ configuration: HTTP3Keepalive, _ session: HTTP3Session, _ handshake: HTTP3Handshake) {
    self.configuration = configuration
    self.session = session
    self.handshake = handshake
  }

  /// How long the peer may acknowledge nothing; nil for any time.
  private var limit: Duration? {
    self.configuration.unacknowledged ?? (self.isSuspect ? Self.defaultLimit : nil)
  }

  /// When the peer is given up if nothing comes from it. A handshake has its own limit.
  var giveUpTime: UInt64? {
    guard self.handshake.isOver, let start = self.session.unansweredSince else {
      return nil
    }
    return self.limit.map { start &+ UInt64(clamping: $0.clamped.nanoseconds) }
  }

  /// To be called when ``giveUpTime`` has come.
  func giveUp() {
    guard let connection = self.connection, let limit = self.limit else { return }
    connection.reportUnfit("nothing was acknowledged for \(limit)")
    connection.shutDown(
      ConnectError(
        code: .unavailable,
        message:
          "the HTTP/3 connection broke: \(connection.state.peer) has acknowledged nothing for \(limit)"
      ),
      sending: .noError
    )
  }

  /// Pings as often as the configuration says. While there are calls, pings often enough that neither side forgets the
  /// connection (RFC 9114, section 5.1).
  func updateKeepalive() {
    guard self.handshake.isOver else { return }
    if self.isQuick { return self.session.setKeepalive(Self.quickPing) }
    let isWanted = self.session.http.hasStreams || self.configuration.pingsWithoutStreams
    guard isWanted != self.isPinging else { return }
    self.isPinging = isWanted
    let configured = self.configuration.pingInterval.map { UInt64(clamping: $0.clamped.nanoseconds) }
    let needed = self.session.idleTimeout.map { $0 / 2 }
    self.session.setKeepalive(isWanted ? [configured, needed].compactMap { $0 }.min() : nil)
  }

  // MARK: Calls that are given up

  func callWasGivenUp(inSilenceSince answerCount: Int) {
    guard self.answerCount == answerCount, !self.isSuspect, let connection = self.connection,
      self.handshake.isOver, !connection.state.isDraining
    else { return }
    self.isSuspect = true
    self.isQuick = true
    self.updateKeepalive()
    connection.state.delegate?.connectionIsSuspect(connection)
    connection.scheduleFlush()
  }

  /// One ping is enough: what is not acknowledged, libngtcp2 sends again by itself, ever more slowly (RFC 9002, section 6.2).
  func didWrite() {
    guard self.isQuick, self.session.unansweredSince != nil else { return }
    self.isQuick = false
    self.isPinging = nil
    self.updateKeepalive()
  }

  /// Something was received that certainly comes from the peer.
  func willHandleAnswer() { self.answerCount += 1 }

  func didHandleAnswer() {
    guard self.isSuspect, let connection = self.connection else { return }
    self.isSuspect = false
    self.isQuick = false
    self.isPinging = nil
    self.updateKeepalive()
    connection.state.delegate?.connectionIsAlive(connection)
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
