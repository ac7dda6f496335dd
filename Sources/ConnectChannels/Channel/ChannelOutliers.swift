internal import Connect
internal import Logging

/// A channel's endpoints as ``SharedOutliers`` judges them: keeps calls away from those that fail more than others.
final class ChannelOutliers: OutlierMember {
  let executor: any CallExecutor
  private let endpoints: Confined<Weak<ChannelEndpoints>>

  init(_ endpoints: ChannelEndpoints, on executor: any CallExecutor) {
    self.executor = executor
    self.endpoints = Confined(Weak(endpoints), to: executor)
    // Calls of a time without outlier detection do not count.
    for subchannel in endpoints.subchannels.list { subchannel.counters.outcomes = CallOutcomes() }
  }

  /// Nil once they are not judged any more.
  private var judged: ChannelEndpoints? {
    guard let endpoints = self.endpoints.value.object, endpoints.outliers === self else { return nil }
    return endpoints
  }

  func takeOutcomes() -> [(endpoint: Endpoint.Identity, outcomes: CallOutcomes)] {
    self.judged?.subchannels.list.compactMap { subchannel in
      let outcomes = subchannel.counters.outcomes
      guard !outcomes.isEmpty else { return nil }
      subchannel.counters.outcomes = CallOutcomes()
      return (subchannel.endpoint.identity, outcomes)
    } ?? []
  }

  func setEjected(_ identities: Set<Endpoint.Identity>) {
    guard let endpoints = self.judged else { return }
    let changed = endpoints.subchannels.list.filter { subchannel in
      // The identity is a set of addresses, so it is not computed without need.
      let isEjected = !identities.isEmpty && identities.contains(subchannel.endpoint.identity)
      return isEjected != subchannel.isEjected
    }
    for subchannel in changed { self.toggle(subchannel, endpoints.environment) }
    if !changed.isEmpty { endpoints.needsUpdate() }
  }

  private func toggle(_ subchannel: Subchannel, _ environment: ChannelEnvironment) {
    let isEjected = !subchannel.isEjected
    subchannel.isEjected = isEjected
    if isEjected { subchannel.counters.ejections += 1 }
    let name = subchannel.endpoint.description
    environment.report(isEjected ? .ejected(endpoint: name) : .returned(endpoint: name))
    environment.logger.info(
      isEjected ? "endpoint is ejected: it fails more than others" : "endpoint returns from ejection",
      metadata: ["origin": "\(environment.origin)", "endpoint": "\(name)"]
    )
  }
}
