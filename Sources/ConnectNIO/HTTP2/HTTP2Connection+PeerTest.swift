internal import Connect
internal import NIOCore

// Finds out whether the peer is still there after a call was given up without a sign of the peer, for example since its
// deadline has passed. Until the peer has answered, the connection serves no other call: the pool opens a new one for them.
extension HTTP2Connection {
  /// A call that is given up sooner says nothing of the peer.
  private static let shortestSilence = TimeAmount.milliseconds(100)

  /// Whether nothing was received since a request was submitted, for long enough to doubt that the peer is there.
  func isSilent(since readCount: Int) -> Bool {
    guard self.readCount == readCount, let start = self.unansweredSince else { return false }
    return self.eventLoop.now - start >= Self.shortestSilence
  }

  /// How long the answer may take: the keepalive's timeout, or its default.
  private var peerTestTimeout: Duration {
    (self.configuration.keepalive ?? .init(interval: .zero)).timeout.clamped
  }

  /// Pings the peer, and takes no streams until something was received.
  func testPeer() {
    guard self.peerTest == nil, self.state == .active, !self.isDraining, self.servedStreams != nil else {
      return
    }
    let timeout = self.peerTestTimeout
    self.peerTest = self.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(timeout)) {
      self.shutDown(
        ConnectError(
          code: .unavailable,
          message:
            "nothing came from \(self.peer) after a call was given up, nor did it answer a ping within \(timeout)"
        ),
        sending: .noError
      )
    }
    self.session.ping()
    self.scheduleFlush()
    self.delegate?.connection(self, canServe: 0)
  }

  /// The peer is there.
  func peerHasAnswered() {
    guard let test = self.peerTest else { return }
    self.peerTest = nil
    test.cancel()
    guard self.state == .active, !self.isDraining, let count = self.servedStreams else { return }
    self.delegate?.connection(self, canServe: count)
  }
}
