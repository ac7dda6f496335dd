internal import Connect
internal import ConnectChannels
internal import Logging
internal import NIOCore

/// Finds out whether the peer of a connection is still there, with pings at intervals (keepalive) and with a test.
///
/// The peer is tested when a call has timed out, or was cancelled, and nothing at all came from the peer in its time, and
/// when nothing comes for a while though there are calls. Until the peer has answered, the connection serves no other call.
///
/// Confined to the connection's event loop.
final class HTTP2PeerWatch {
  /// A ping to a peer that calls got no answer from.
  struct Test {
    /// Ends the connection if the ping goes unanswered; nil while there is none.
    var timer: Scheduled<Void>?
    /// How many pings were sent since a part of a response has come. Servers end connections that ping again and again without
    /// doing anything (gRFC A8; with default settings, grpcio does at the fourth ping within five minutes).
    var pings = 0
    var lastPing: NIODeadline?

    /// Whether the next stream begins to look for silence. False without a limit, too.
    var isResting: Bool
    var look: Scheduled<Void>?
    /// How often something had been received at the last look.
    var readCount = 0
    /// How many looks in a row have found that nothing was received.
    var silentLooks = 0
  }

  /// The time between the first two pings of ``Test/pings``. It is short, since a server may stop just after it has answered the
  /// first one. Without it, calls that are given up soon after that answer would use up the second one.
  private static let firstPause = TimeAmount.seconds(1)
  /// The time between later ones.
  private static let pause = TimeAmount.minutes(5)

  private let configuration: HTTP2Configuration
  private let eventLoop: any EventLoop
  /// The factor by which the connections to this server ping more slowly than configured.
  private let keepalivePace: NIOLoopBoundBox<Int>?
  /// From ``start(for:)`` to ``stop()``. Not weak, as each call would pay for that: an object that was ever referenced so counts
  /// its references more slowly.
  private var connection: HTTP2Connection?

  /// How often something was received.
  private(set) var readCount = 0
  /// Nil without keepalive. Each call reads it, so exclusivity is not checked at run time.
  @exclusivity(unchecked) private var keepalive: HTTP2Keepalive?
  private var keepaliveTask: Scheduled<Void>?
  /// When the ping was sent that has no answer yet.
  private var pingTime: NIODeadline?
  private(set) var test: Test

  init(
    _ configuration: HTTP2Configuration,
    keepalivePace: NIOLoopBoundBox<Int>?,
    eventLoop: any EventLoop
  ) {
    self.configuration = configuration
    self.keepalivePace = keepalivePace
    self.eventLoop = eventLoop
    self.test = Test(isResting: configuration.silenceLimit != nil)
  }

  /// The connection has become active. It will call ``stop()``.
  func start(for connection: HTTP2Connection) {
    self.connection = connection
    guard let configuration = self.configuration.keepalive else { return }
    let slowdown = self.keepalivePace?.value ?? 1
    let keepalive = HTTP2Keepalive(configuration, slowdown: slowdown, now: self.eventLoop.now)
    self.keepalive = keepalive
    self.lookAgain(at: keepalive.firstLook)
  }

  func stop() {
    self.keepaliveTask.take()?.cancel()
    self.test.timer.take()?.cancel()
    self.test.look.take()?.cancel()
    self.connection = nil
  }

  // MARK: What happens on the connection

  func streamWillStart() {
    if let keepalive = self.keepalive, keepalive.isResting,
      let decision = self.keepalive?.wake(now: self.eventLoop.now)
    {
      self.act(on: decision)
    }
    if self.test.isResting { self.watchForSilence() }
  }

  func willRead() {
    if self.keepalive != nil { self.keepalive?.received(now: self.eventLoop.now) }
    self.readCount &+= 1
  }

  func didRead() {
    guard self.test.timer != nil else { return }
    self.test.timer.take()?.cancel()
    if let connection = self.connection { connection.state.delegate?.connectionIsAlive(connection) }
  }

  /// A part of a response has come.
  func didReceiveResponse() {
    self.test.pings = 0
  }

  func didReceivePong() {
    guard let start = self.pingTime.take(), let connection = self.connection else { return }
    let roundTrip = Duration.nanoseconds((self.eventLoop.now - start).nanoseconds)
    connection.state.delegate?.connection(connection, roundTrip: roundTrip)
  }

  func callWasGivenUp(inSilenceSince readCount: Int) {
    if self.readCount == readCount {
      self.testPeer(after: self.test.pings == 1 ? Self.firstPause : Self.pause)
    }
  }

  /// The server ends the connection since it gets too many pings: later ones ping half as often (gRFC A8).
  func slowDown(after goAway: HTTP2GoAway) {
    guard goAway.errorCode == .enhanceYourCalm, goAway.debugData == "too_many_pings" else { return }
    let slowdown = (self.keepalivePace?.value ?? 1) * 2
    self.keepalivePace?.value = min(slowdown, 1 << 16)
    self.connection?.state.logger.warning(
      """
      the server gets too many pings: the keepalive interval is doubled; configure a longer one, \
      or let the server allow more
      """,
      metadata: [
        "peer": "\(self.peer)", "interval": "\(self.configuration.keepalive?.interval ?? .zero)",
        "times": "\(slowdown)",
      ]
    )
  }

  // MARK: Pings

  private var peer: String { self.connection?.state.peer ?? "the server" }

  private func lookAgain(at time: NIODeadline) {
    self.keepaliveTask = self.eventLoop.assumeIsolated().scheduleTask(deadline: time) {
      guard let connection = self.connection, connection.state.phase == .active, self.keepalive != nil else {
        return
      }
      let (now, hasStreams) = (self.eventLoop.now, connection.session.streams.count > 0)
      guard let decision = self.keepalive?.look(now: now, hasStreams: hasStreams) else { return }
      self.act(on: decision)
    }
  }

  private func act(on decision: HTTP2Keepalive.Decision) {
    switch decision {
    case .look(let time):
      self.lookAgain(at: time)
    case .ping(let time):
      self.ping()
      self.lookAgain(at: time)
    case .rest:
      self.keepaliveTask = nil
    case .giveUp:
      let timeout = self.configuration.keepalive?.timeout.clamped ?? .zero
      self.giveUp("\(self.peer) did not answer a keepalive ping within \(timeout)")
    }
  }

  private func ping() {
    self.pingTime = self.pingTime ?? self.eventLoop.now
    self.connection?.session.handle?.ping()
    self.connection?.scheduleFlush()
  }

  private func giveUp(_ message: String) {
    self.connection?.shutDown(ConnectError(code: .unavailable, message: message), sending: .noError)
  }

  /// - Parameter pause: How long ago the last ping of ``Test/pings`` must be.
  private func testPeer(after pause: TimeAmount) {
    guard self.test.timer == nil, let connection = self.connection, connection.state.phase == .active,
      connection.state.servedStreams != nil
    else { return }
    if self.test.pings > 0, let last = self.test.lastPing {
      // A keepalive goes on by itself. Its pings must not be doubled.
      guard self.configuration.keepalive == nil, self.eventLoop.now - last >= pause else { return }
    }
    // How long the answer may take: the keepalive's timeout, or its default.
    let timeout = max((self.configuration.keepalive ?? .init(interval: .zero)).timeout.clamped, .seconds(1))
    self.test.pings += 1
    self.test.lastPing = self.eventLoop.now
    self.test.timer = self.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(timeout)) {
      self.giveUp(
        "\(self.peer) sent nothing while it had calls to answer, and did not answer a ping within \(timeout)"
      )
    }
    self.ping()
    connection.state.delegate?.connectionIsSuspect(connection)
  }

  // MARK: Silence

  /// Looks twice in each limit whether anything was received, from the start of a call until there is none. A read costs
  /// nothing for it, and a silence is noticed after one limit to one and a half.
  private func watchForSilence() {
    self.test.isResting = false
    self.test.silentLooks = 0
    self.test.readCount = self.readCount
    self.lookAgainForSilence()
  }

  private func lookAgainForSilence() {
    guard let limit = self.configuration.silenceLimit else { return }
    let delay = TimeAmount(max(limit.clamped, .seconds(1)) / 2)
    self.test.look = self.eventLoop.assumeIsolated().scheduleTask(in: delay) { self.lookForSilence() }
  }

  private func lookForSilence() {
    self.test.look = nil
    guard let connection = self.connection, connection.state.phase == .active else { return }
    guard connection.session.streams.count > 0 else {
      self.test.isResting = true
      return
    }
    // While output waits, neither would a ping get out, nor would its answer be read.
    if self.readCount == self.test.readCount, connection.state.channel.isWritable, !connection.isReadHeld {
      self.test.silentLooks += 1
    } else {
      self.test.readCount = self.readCount
      self.test.silentLooks = 0
    }
    if self.test.silentLooks >= 2 { self.testPeer(after: Self.pause) }
    self.lookAgainForSilence()
  }
}
