internal import Connect
internal import NIOCore

extension HTTP2Connection {
  /// Sets the timer that pings if nothing is received until then.
  func scheduleKeepalive() {
    guard let keepalive = self.configuration.keepalive, self.state == .active else { return }
    self.hasReceived = false
    let interval = TimeAmount(max(keepalive.interval.clamped, .milliseconds(1)))
    self.keepaliveTask = self.eventLoop.assumeIsolated().scheduleTask(in: interval) {
      self.keepaliveIntervalPassed(keepalive)
    }
  }

  private func keepaliveIntervalPassed(_ keepalive: HTTP2Configuration.Keepalive) {
    guard self.state == .active else { return }
    let isPingDue = keepalive.pingsWithoutStreams || self.session.liveCount > 0
    guard isPingDue, !self.hasReceived else {
      self.scheduleKeepalive()
      return
    }
    self.session.ping()
    self.scheduleFlush()
    let timeout = TimeAmount(keepalive.timeout.clamped)
    self.keepaliveTask = self.eventLoop.assumeIsolated().scheduleTask(in: timeout) {
      self.keepaliveTimeoutPassed(keepalive)
    }
  }

  private func keepaliveTimeoutPassed(_ keepalive: HTTP2Configuration.Keepalive) {
    guard !self.hasReceived else {
      self.scheduleKeepalive()
      return
    }
    let error = ConnectError(
      code: .unavailable,
      message: "the server did not answer a keepalive ping within \(keepalive.timeout.clamped)"
    )
    self.shutDown(error, sending: .noError)
  }
}
