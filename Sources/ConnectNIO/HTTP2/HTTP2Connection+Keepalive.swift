internal import Connect
internal import NIOCore

extension HTTP2Connection {
  /// Sets the timer that pings if nothing is received until then.
  func scheduleKeepalive() {
    guard let keepalive = self.configuration.keepalive, self.state == .active else { return }
    self.hasReceived = false
    self.keepaliveTask = self.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(keepalive.interval)) {
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
    self.keepaliveTask = self.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(keepalive.timeout)) {
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
      message: "the server did not answer a keepalive ping within \(keepalive.timeout)"
    )
    self.shutDown(error, sending: .noError)
  }
}
