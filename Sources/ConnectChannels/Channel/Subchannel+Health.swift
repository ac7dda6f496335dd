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
    self.cancelHealthWatch()
    self.health?.reset()
  }

  private func cancelHealthWatch() {
    let watch = self.healthWatch
    self.healthWatchDidEnd()
    watch?.cancel()
  }

  private func healthWatchDidEnd() {
    if self.healthWatch.take() != nil { self.counters.endedWatches += 1 }
  }

  /// Begins a watch on a connection that takes streams, in place of the one before.
  func restartHealthWatch() {
    guard self.health != nil else { return }
    self.healthTimer?.cancel()
    self.healthTimer = nil
    self.cancelHealthWatch()
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
      self.startWatch(request, handler)
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
      self.healthWatchDidEnd()
      self.warnOnce(
        &self.hasWarnedOfHealth,
        "the server has no health service, or no HTTP/2 for it, so its health is not watched"
      )
    case .ended:
      self.healthWatchDidEnd()
    }
    switch action {
    case .watch: self.restartHealthWatch()
    case .watchLater(let delay): self.healthTimer = self.schedule(after: delay) { $0.restartHealthWatch() }
    case nil: break
    }
    if health.state != before { self.channel?.needsUpdate() }
  }
}
