internal import Connect
internal import Logging

/// Watches the health of an endpoint's server.
extension Subchannel {
  /// Watches the health of `service` from now on.
  func watchHealth(of service: String?) {
    guard service != self.healthService else { return }
    self.healthService = service
    self.stopHealthWatch()
    self.health = service.map { _ in HealthCheck() }
    self.restartHealthWatch()
  }

  func stopHealthWatch() {
    self.healthTimer?.cancel()
    self.healthTimer = nil
    self.healthWatch.take()?.cancel()
    self.health?.reset()
  }

  /// Begins a watch on a connection that takes streams, in place of the one before.
  func restartHealthWatch() {
    guard self.health != nil else { return }
    self.healthTimer?.cancel()
    self.healthTimer = nil
    self.healthWatch.take()?.cancel()
    guard self.isReady, let service = self.healthService else { return }
    guard self.pool.version != .http1 else {
      self.received(.unimplemented)
      return
    }
    let watch = ServerWatch<HealthStatus>(
      path: HealthMessages.path,
      request: HealthMessages.request(service: service),
      largestAnswer: HealthMessages.largestAnswer,
      decode: HealthMessages.status(decoding:)
    ) { [weak self] event in
      self?.received(event)
    } start: { request, handler in
      self.pool.leaseConnection()?.connection?.startStream(request, handler: handler)
    }
    if watch.isUnderWay {
      self.healthWatch = watch
    } else {
      // All streams are taken.
      self.healthTimer = self.schedule(after: .seconds(1)) { $0.restartHealthWatch() }
    }
  }

  private func received(_ event: ServerWatch<HealthStatus>.Event) {
    guard var health = self.health else { return }
    let before = health.state
    let action = health.received(event, random: &self.random)
    self.health = health
    switch event {
    case .answer: break
    case .unimplemented:
      self.healthWatch = nil
      self.environment.logger.warning(
        "the server has no health service, or no HTTP/2 for it, so its health is not watched",
        metadata: ["origin": "\(self.peer)", "endpoint": "\(self.endpoint)"]
      )
    case .ended:
      self.healthWatch = nil
    }
    switch action {
    case .watch: self.restartHealthWatch()
    case .watchLater(let delay): self.healthTimer = self.schedule(after: delay) { $0.restartHealthWatch() }
    case nil: break
    }
    if health.state != before { self.channel?.needsUpdate() }
  }
}
