internal import Connect

/// Each endpoint that is ready gets calls in proportion to its weight (gRFC A58). All endpoints are kept connected.
package struct WeightedRoundRobinBalancer: LoadBalancer {
  package let configuration: BalancingPolicy.WeightedRoundRobin
  /// The endpoints that were ready at the last update.
  private var ready: Set<EndpointID> = []
  private var weights: [Double] = []
  private var picker: WeightedRoundRobinPicker?

  package init(_ configuration: BalancingPolicy.WeightedRoundRobin = .defaults) {
    self.configuration = configuration
  }

  package mutating func update(
    _ endpoints: [BalancedEndpoint],
    in context: inout BalancerContext
  ) -> BalancerDecision {
    let summary = EndpointSummary(endpoints)
    let weights = self.weights(of: endpoints, in: context)
    self.ready = Set(summary.ready)
    guard !summary.ready.isEmpty else {
      self.picker = nil
      return .unready(summary)
    }
    var decision = BalancerDecision(
      state: .ready,
      picker: self.picker(for: summary.ready, weights, random: &context.random),
      connect: summary.idle
    )
    if self.configuration.source == .reports, summary.ready.count > 1 {
      decision.updateAfter = self.configuration.updatePeriod
    }
    return decision
  }

  private mutating func picker(
    for endpoints: [EndpointID],
    _ weights: [Double],
    random: inout SeededRandom
  ) -> WeightedRoundRobinPicker {
    if let picker = self.picker, picker.endpoints == endpoints, self.weights == weights { return picker }
    let limits: StrideScheduler.Limits = self.configuration.source == .reports ? .reported : .given
    let picker = WeightedRoundRobinPicker(
      endpoints,
      StrideScheduler(weights, limits: limits, random: &random)
    )
    self.picker = picker
    self.weights = weights
    return picker
  }

  /// The weights of the endpoints that are ready; 0 where there is none.
  private func weights(of endpoints: [BalancedEndpoint], in context: BalancerContext) -> [Double] {
    var weights: [Double] = []
    for endpoint in endpoints where endpoint.effectiveState == .ready {
      switch self.configuration.source {
      case .resolver:
        weights.append(Double(endpoint.endpoint.weight))
      case .reports:
        // Reports from before the connection, or the ejection, say nothing about the server now.
        if !self.ready.contains(endpoint.id) { context.loads.forgetReports(of: endpoint.id) }
        weights.append(self.reportedWeight(of: endpoint.id, in: context))
      }
    }
    return weights
  }

  private func reportedWeight(of id: EndpointID, in context: BalancerContext) -> Double {
    guard let reports = context.loads.reports(of: id) else { return 0 }
    let now = context.now.clamped
    if now - reports.latestTime.clamped >= self.configuration.expirationPeriod {
      context.loads.forgetReports(of: id)
      return 0
    }
    guard now - reports.firstTime.clamped >= self.configuration.blackoutPeriod else { return 0 }
    return reports.latest.weight(errorPenalty: self.configuration.errorPenalty)
  }
}

final class WeightedRoundRobinPicker: Picker {
  let endpoints: [EndpointID]
  private var scheduler: StrideScheduler

  init(_ endpoints: [EndpointID], _ scheduler: StrideScheduler) {
    self.endpoints = endpoints
    self.scheduler = scheduler
  }

  func pick(_ call: borrowing PickContext) -> PickResult {
    .endpoint(self.endpoints[self.scheduler.next()])
  }
}
