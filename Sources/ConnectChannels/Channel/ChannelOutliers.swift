internal import Connect
internal import Logging

/// The endpoints of a channel, or of a part of its tree of policies, as ``SharedOutliers`` judges them: keeps calls away from those
/// that fail more than others.
final class ChannelOutliers: OutlierMember {
  /// What is touched on the executor alone.
  private final class Part {
    weak var endpoints: ChannelEndpoints?
    var subchannels: [Subchannel] = []
  }

  let executor: any CallExecutor
  private let place: TreePlace
  private let judge: SharedOutliers
  private let part: Confined<Part>

  private init(_ place: TreePlace, of endpoints: ChannelEndpoints) {
    self.executor = endpoints.environment.executor
    self.place = place
    self.judge = endpoints.environment.shared.outliers.judge(at: place)
    let part = Part()
    part.endpoints = endpoints
    self.part = Confined(part, to: self.executor)
  }

  /// The parts of the endpoints that are judged, each by itself. Those that there were before go on.
  static func parts(of endpoints: ChannelEndpoints) -> [ChannelOutliers] {
    guard endpoints.policy.outlierDetection != nil else {
      for subchannel in endpoints.subchannels.list { subchannel.isEjected = false }
      return []
    }
    var groups: [(scope: OutlierScope, subchannels: [Subchannel])] = []
    var indices: [TreePlace: Int] = [:]
    for subchannel in endpoints.subchannels.list {
      guard let scope = OutlierScope(of: subchannel.endpoint, in: endpoints.policy),
        scope.settings.isActive
      else {
        subchannel.isEjected = false
        continue
      }
      if let index = indices[scope.place] {
        groups[index].subchannels.append(subchannel)
      } else {
        indices[scope.place] = groups.count
        groups.append((scope, [subchannel]))
      }
    }
    return groups.map { scope, subchannels in
      let known = endpoints.outliers.first { $0.place == scope.place }
      let part = known ?? ChannelOutliers(scope.place, of: endpoints)
      // Calls of a time without outlier detection, or of another part, do not count.
      let before = Set(part.part.value.subchannels.map(\.id))
      for subchannel in subchannels where !before.contains(subchannel.id) {
        subchannel.counting.calls.outcomes = CallOutcomes()
      }
      part.part.value.subchannels = subchannels
      part.judge.join(part, subchannels.map(\.endpoint.identity), scope.settings)
      return part
    }
  }

  /// The endpoints are not judged any more.
  func leave() {
    self.part.value.endpoints = nil
    self.part.value.subchannels = []
    self.judge.leave(self)
  }

  func takeOutcomes() -> [(endpoint: Endpoint.Identity, outcomes: CallOutcomes)] {
    self.part.value.subchannels.compactMap { subchannel in
      let outcomes = subchannel.counting.calls.outcomes
      guard !outcomes.isEmpty else { return nil }
      subchannel.counting.calls.outcomes = CallOutcomes()
      return (subchannel.endpoint.identity, outcomes)
    }
  }

  func setEjected(_ identities: Set<Endpoint.Identity>) {
    let part = self.part.value
    guard let endpoints = part.endpoints else { return }
    let changed = part.subchannels.filter { subchannel in
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
