internal import Connect
internal import ConnectChannels
internal import NIOCore

/// A ping to a peer that calls got no answer from.
struct HTTP2PeerTest {
  /// Ends the connection if the ping goes unanswered; nil while there is none.
  var timer: Scheduled<Void>?
  /// Whether a ping was answered, and no response has come since. Servers end connections that ping again and again
  /// without doing anything (gRFC A8: after two pings within five minutes).
  var isSpent = false
  var lastPing: NIODeadline?
}

/// Finds out whether the peer is still there when a call has timed out and nothing at all came from the peer in its time. Until
/// the peer has answered, the connection serves no other call.
extension HTTP2Connection {
  private static let pause = TimeAmount.minutes(5)

  /// How long the answer may take: the keepalive's timeout, or its default.
  private var peerTestTimeout: Duration {
    max((self.configuration.keepalive ?? .init(interval: .zero)).timeout.clamped, .seconds(1))
  }

  func callExpired(inSilenceSince readCount: Int) {
    guard self.readCount == readCount, self.peerTest.timer == nil else { return }
    guard self.state == .active, !self.isDraining, self.servedStreams != nil else { return }
    if self.peerTest.isSpent, let last = self.peerTest.lastPing, self.eventLoop.now - last < Self.pause {
      return
    }
    let timeout = self.peerTestTimeout
    self.peerTest.isSpent = true
    self.peerTest.lastPing = self.eventLoop.now
    self.peerTest.timer = self.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(timeout)) {
      self.shutDown(
        ConnectError(
          code: .unavailable,
          message:
            "a call to \(self.peer) timed out, nothing came meanwhile, and a ping had no answer within \(timeout)"
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
}
