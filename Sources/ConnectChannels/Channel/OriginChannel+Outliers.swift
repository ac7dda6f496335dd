internal import Connect
internal import Logging

/// Keeps calls away from endpoints that fail more than others.
extension OriginChannel {
  /// The endpoints, or the policy, have changed.
  func updateOutliers() {
    guard let settings = self.policy.outlierDetection else {
      self.tracker.outliers = nil
      for subchannel in self.subchannels { subchannel.isEjected = false }
      self.scheduleOutlierTick()
      return
    }
    let now = self.executor.now
    if self.tracker.outliers == nil { self.tracker.outliers = OutlierDetector(settings) }
    if self.tracker.outliers?.configuration != settings {
      self.apply(self.tracker.outliers?.configure(settings, now: now) ?? [])
    }
    self.apply(self.tracker.outliers?.update(self.subchannels.map(\.id), now: now) ?? [])
    self.scheduleOutlierTick()
  }

  private func scheduleOutlierTick() {
    self.outlierTimer?.cancel()
    self.outlierTimer = self.tracker.outliers?.nextTick.map { time in
      self.schedule(after: time - self.executor.now) { $0.tickOutliers() }
    }
  }

  private func tickOutliers() {
    let changes = self.tracker.outliers?.tick(now: self.executor.now, random: &self.random) ?? []
    self.apply(changes)
    self.scheduleOutlierTick()
    if !changes.isEmpty { self.needsUpdate() }
  }

  private func apply(_ changes: [OutlierDetector.Change]) {
    for change in changes {
      switch change {
      case .ejected(let id): self.mark(id, isEjected: true)
      case .returned(let id): self.mark(id, isEjected: false)
      }
    }
  }

  private func mark(_ id: EndpointID, isEjected: Bool) {
    guard let subchannel = self.subchannel(id) else { return }
    subchannel.isEjected = isEjected
    if isEjected { subchannel.counters.ejections += 1 }
    let name = subchannel.endpoint.description
    self.environment.report(isEjected ? .ejected(endpoint: name) : .returned(endpoint: name))
    self.environment.logger.info(
      isEjected ? "endpoint is ejected: it fails more than others" : "endpoint returns from ejection",
      metadata: ["origin": "\(self.origin)", "endpoint": "\(subchannel.endpoint)"]
    )
  }
}
