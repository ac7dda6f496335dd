/// Each call goes to the least loaded of a few endpoints chosen at random (gRFC A48): slow endpoints get fewer calls.
/// All endpoints are kept connected.
///
/// The load of an endpoint is its number of calls in flight from this client. An endpoint that is drawn twice may be
/// chosen in spite of its load, as in gRPC and Envoy.
package struct LeastRequestBalancer: LoadBalancer {
  /// How many endpoints are compared for each call: 2 to 10.
  package let choices: Int

  /// - Parameter choices: Brought into the range from 2 to 10.
  package init(choices: Int = 2) {
    self.choices = min(max(choices, 2), 10)
  }

  package mutating func update(
    _ endpoints: [BalancedEndpoint],
    in context: inout BalancerContext
  ) -> BalancerDecision {
    let summary = EndpointSummary(endpoints)
    guard !summary.ready.isEmpty else { return .unready(summary) }
    let picker = LeastRequestPicker(summary.ready, loads: context.loads, choices: self.choices)
    return BalancerDecision(state: .ready, picker: picker, connect: summary.idle)
  }
}

final class LeastRequestPicker: Picker {
  private let endpoints: [EndpointID]
  private let loads: EndpointLoads
  private let choices: Int

  /// - Parameter endpoints: At least one.
  init(_ endpoints: [EndpointID], loads: EndpointLoads, choices: Int) {
    self.endpoints = endpoints
    self.loads = loads
    self.choices = choices
  }

  func pick(_ call: borrowing PickContext) -> PickResult {
    var random = call.generator
    var best = self.endpoints[random.index(below: self.endpoints.count)]
    var least = self.loads.calls(of: best)
    for _ in 1..<self.choices {
      let other = self.endpoints[random.index(below: self.endpoints.count)]
      let calls = self.loads.calls(of: other)
      if calls < least { (best, least) = (other, calls) }
    }
    return .endpoint(best)
  }
}
