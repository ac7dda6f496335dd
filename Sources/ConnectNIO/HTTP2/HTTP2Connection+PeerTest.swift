internal import Connect
internal import ConnectChannels
internal import NIOCore

/// A ping to a peer that calls got no answer from.
struct HTTP2PeerTest {
  /// Ends the connection if the ping goes unanswered; nil while there is none.
  var timer: Scheduled<Void>?
  /// Whether a ping was answered, and no part of a response has come since. Servers end connections that ping again and again
  /// without doing anything (gRFC A8: after two pings within five minutes).
  var isSpent = false
  var lastPing: NIODeadline?

  /// Whether the next stream begins to look for silence. False without a limit, too.
  var isResting: Bool
  var look: Scheduled<Void>?
  /// How often something had been received at the last look.
  var readCount = 0
  /// How many looks in a row have found that nothing was received.
  var silentLooks = 0

  init(_ configuration: HTTP2Configuration) {
    self.isResting = configuration.silenceLimit != nil
  }
}

/// Finds out whether the peer is still there: when a call has timed out, or was cancelled, and nothing at all came from the
/// peer in its time, and when nothing comes for a while though there are calls. Until the peer has answered, the connection
/// serves no other call.
extension HTTP2Connection {
  private static let pause = TimeAmount.minutes(5)

  /// How long the answer may take: the keepalive's timeout, or its default.
  private var peerTestTimeout: Duration {
    max((self.configuration.keepalive ?? .init(interval: .zero)).timeout.clamped, .seconds(1))
  }

  func callWasGivenUp(inSilenceSince readCount: Int) {
    if self.readCount == readCount { self.testPeer() }
  }

  private func testPeer() {
    guard self.peerTest.timer == nil, self.state == .active, self.servedStreams != nil else { return }
    if self.peerTest.isSpent, let last = self.peerTest.lastPing {
      // A keepalive goes on by itself. Its pings must not be doubled.
      guard self.configuration.keepalive == nil, self.eventLoop.now - last >= Self.pause else { return }
    }
    let timeout = self.peerTestTimeout
    self.peerTest.isSpent = true
    self.peerTest.lastPing = self.eventLoop.now
    self.peerTest.timer = self.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(timeout)) {
      self.shutDown(
        ConnectError(
          code: .unavailable,
          message:
            "\(self.peer) sent nothing while it had calls to answer, and did not answer a ping within \(timeout)"
        ),
        sending: .noError
      )
    }
    self.ping()
    self.delegate?.connectionIsSuspect(self)
  }

  func ping() {
    self.pingTime = self.pingTime ?? self.eventLoop.now
    self.session.ping()
    self.scheduleFlush()
  }

  func didReceivePong() {
    guard let start = self.pingTime.take() else { return }
    self.delegate?.connection(self, roundTrip: .nanoseconds((self.eventLoop.now - start).nanoseconds))
  }

  func peerHasAnswered() {
    self.peerTest.timer.take()?.cancel()
    self.delegate?.connectionIsAlive(self)
  }

  // MARK: Silence

  /// Looks twice in each limit whether anything was received, from the start of a call until there is none. A read costs
  /// nothing for it, and a silence is noticed after one limit to one and a half.
  func watchForSilence() {
    self.peerTest.isResting = false
    self.peerTest.silentLooks = 0
    self.peerTest.readCount = self.readCount
    self.lookAgainForSilence()
  }

  private func lookAgainForSilence() {
    guard let limit = self.configuration.silenceLimit else { return }
    let delay = TimeAmount(max(limit.clamped, .seconds(1)) / 2)
    self.peerTest.look = self.eventLoop.assumeIsolated().scheduleTask(in: delay) { self.lookForSilence() }
  }

  private func lookForSilence() {
    self.peerTest.look = nil
    guard self.state == .active else { return }
    guard self.session.liveCount > 0 else {
      self.peerTest.isResting = true
      return
    }
    // While output waits, neither would a ping get out, nor would its answer be read.
    if self.readCount == self.peerTest.readCount, self.channel.isWritable, !self.isReadHeld {
      self.peerTest.silentLooks += 1
    } else {
      self.peerTest.readCount = self.readCount
      self.peerTest.silentLooks = 0
    }
    if self.peerTest.silentLooks >= 2 { self.testPeer() }
    self.lookAgainForSilence()
  }
}
