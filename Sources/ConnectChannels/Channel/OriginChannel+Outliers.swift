internal import Connect
internal import Logging

/// Keeps calls away from endpoints that fail more than others.
extension OriginChannel: OutlierMember {
  /// The endpoints, or the policy, have changed.
  func updateOutliers() {
    guard let settings = self.policy.outlierDetection, settings.isActive else {
      self.leaveOutliers()
      for subchannel in self.subchannels { subchannel.isEjected = false }
      return
    }
    if !self.isJudged {
      self.isJudged = true
      for subchannel in self.subchannels { subchannel.counters.outcomes = CallOutcomes() }
    }
    self.environment.shared.outliers.join(self, self.subchannels.map(\.endpoint.identity), settings)
  }

  func leaveOutliers() {
    guard self.isJudged else { return }
    self.isJudged = false
    self.environment.shared.outliers.leave(self)
  }

  func takeOutcomes() -> [(endpoint: Endpoint.Identity, outcomes: CallOutcomes)] {
    self.subchannels.compactMap { subchannel in
      let outcomes = subchannel.counters.outcomes
      guard !outcomes.isEmpty else { return nil }
      subchannel.counters.outcomes = CallOutcomes()
      return (subchannel.endpoint.identity, outcomes)
    }
  }

  func setEjected(_ endpoints: Set<Endpoint.Identity>) {
    guard self.isJudged, !endpoints.isEmpty || self.subchannels.contains(where: \.isEjected) else { return }
    var hasChanged = false
    for subchannel in self.subchannels {
      let isEjected = endpoints.contains(subchannel.endpoint.identity)
      guard isEjected != subchannel.isEjected else { continue }
      hasChanged = true
      self.mark(subchannel, isEjected: isEjected)
    }
    if hasChanged { self.needsUpdate() }
  }

  private func mark(_ subchannel: Subchannel, isEjected: Bool) {
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
