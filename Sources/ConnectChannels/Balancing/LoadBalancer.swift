/// Spreads the calls of a channel over its endpoints.
///
/// A balancer is a value without clocks, locks and I/O. The channel calls it whenever something has changed and does
/// what the decision says. This one sends all calls to the first endpoint that is ready:
///
/// ```swift
/// struct FirstReady: LoadBalancer {
///   mutating func update(
///     _ endpoints: [BalancedEndpoint],
///     in context: inout BalancerContext
///   ) -> BalancerDecision {
///     let summary = EndpointSummary(endpoints)
///     guard let first = summary.ready.first else { return .unready(summary) }
///     return BalancerDecision(state: .ready, picker: ConstantPicker(.endpoint(first)), connect: summary.idle)
///   }
/// }
/// ```
public protocol LoadBalancer {
  /// Chooses the channel's endpoints from those in an answer of the resolver. Called with each answer. A policy may
  /// leave some out, or merge several into one. The default keeps all.
  mutating func select(_ endpoints: [Endpoint], random: inout SeededRandom) -> [Endpoint]

  /// Decides what to do now. Called when the list of endpoints or the state of one has changed, and when a user wants a
  /// connection. Also called when the time of ``BalancerDecision/updateAfter`` is over.
  ///
  /// - Parameters:
  ///   - endpoints: In the order of the resolver, or of ``select(_:random:)``.
  ///   - context: The time, the loads of the endpoints, and random numbers. The channel keeps the changed state of
  ///     ``BalancerContext/random``.
  mutating func update(
    _ endpoints: [BalancedEndpoint],
    in context: inout BalancerContext
  ) -> BalancerDecision
}

extension LoadBalancer {
  public mutating func select(_ endpoints: [Endpoint], random: inout SeededRandom) -> [Endpoint] {
    endpoints
  }
}
