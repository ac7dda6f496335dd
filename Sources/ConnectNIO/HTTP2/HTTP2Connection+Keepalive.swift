internal import Connect
internal import Logging
internal import NIOCore

extension HTTP2Connection {
  func startKeepalive() {
    guard let configuration = self.configuration.keepalive else { return }
    let slowdown = self.keepalivePace?.value ?? 1
    let keepalive = HTTP2Keepalive(configuration, slowdown: slowdown, now: self.eventLoop.now)
    self.keepalive = keepalive
    self.lookAgain(at: keepalive.firstLook)
  }

  /// A stream starts after a rest.
  func wakeKeepalive() {
    guard let decision = self.keepalive?.wake(now: self.eventLoop.now) else { return }
    self.act(on: decision)
  }

  private func lookAgain(at time: NIODeadline) {
    self.keepaliveTask = self.eventLoop.assumeIsolated().scheduleTask(deadline: time) {
      guard self.state == .active, let now = self.keepalive.map({ _ in self.eventLoop.now }) else { return }
      let hasStreams = self.session.liveCount > 0
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
      let error = ConnectError(
        code: .unavailable,
        message: "\(self.peer) did not answer a keepalive ping within \(timeout)"
      )
      self.shutDown(error, sending: .noError)
    }
  }

  /// The server ends the connection since it gets too many pings: later ones ping half as often (gRFC A8).
  func slowDownKeepalive(after goAway: HTTP2GoAway) {
    guard goAway.errorCode == .enhanceYourCalm, goAway.debugData == "too_many_pings" else { return }
    let slowdown = (self.keepalivePace?.value ?? 1) * 2
    self.keepalivePace?.value = min(slowdown, 1 << 16)
    self.logger.warning(
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
}
