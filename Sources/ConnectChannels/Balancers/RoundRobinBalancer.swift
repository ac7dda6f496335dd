/// Each endpoint that is ready gets the same number of calls, in turn. All endpoints are kept connected.
///
/// It starts at a random endpoint, so that many clients do not begin with the same one.
package struct RoundRobinBalancer: LoadBalancer {
  private var picker: RoundRobinPicker?

  package init() {}

  package mutating func update(
    _ endpoints: [BalancedEndpoint],
    in context: inout BalancerContext
  ) -> BalancerDecision {
    let summary = EndpointSummary(endpoints)
    guard !summary.ready.isEmpty else {
      self.picker = nil
      return .unready(summary)
    }
    // Keep the picker and its position: a restart at each change of another endpoint would spread calls unevenly.
    if let picker = self.picker, picker.endpoints == summary.ready {
      return self.decision(picker, summary)
    }
    let picker = RoundRobinPicker(summary.ready, start: context.random.index(below: summary.ready.count))
    self.picker = picker
    return self.decision(picker, summary)
  }

  private func decision(_ picker: RoundRobinPicker, _ summary: EndpointSummary) -> BalancerDecision {
    // A channel need not ask a picker of one endpoint for each call.
    let ready = picker.endpoints
    let chosen: any Picker = ready.count == 1 ? ConstantPicker(.endpoint(ready[0])) : picker
    return BalancerDecision(state: .ready, picker: chosen, connect: summary.idle)
  }
}

final class RoundRobinPicker: Picker {
  let endpoints: [EndpointID]
  /// Each call changes it, so exclusivity is not checked at run time. That is safe: nothing here calls out.
  @exclusivity(unchecked) private var next: Int

  /// - Parameter endpoints: At least one.
  init(_ endpoints: [EndpointID], start: Int) {
    self.endpoints = endpoints
    self.next = start
  }

  func pick(_ call: borrowing PickContext) -> PickResult {
    let index = self.next
    self.next = index + 1 == self.endpoints.count ? 0 : index + 1
    return .endpoint(self.endpoints[index])
  }
}
