/// What a balancer decides after a change of the endpoints or their states.
public struct BalancerDecision {
  /// The state of the channel.
  public var state: ConnectivityState
  /// Chooses endpoints from now on. Calls that wait are picked again.
  public var picker: any Picker
  /// The endpoints that should connect. The channel ignores those that are not idle.
  public var connect: [EndpointID]
  /// When the channel should ask again, even if nothing changes; nil for not at all.
  public var updateAfter: Duration?

  /// A decision. By default, no further endpoint connects, and the decision holds until something changes.
  public init(
    state: ConnectivityState,
    picker: any Picker,
    connect: [EndpointID] = [],
    updateAfter: Duration? = nil
  ) {
    self.state = state
    self.picker = picker
    self.connect = connect
    self.updateAfter = updateAfter
  }

  /// The decision of a policy that keeps all endpoints connected, while none is ready. Calls wait if an endpoint may
  /// become ready. Otherwise they fail with the last error.
  public static func unready(_ summary: EndpointSummary) -> BalancerDecision {
    let state = summary.counts.aggregateOfEager
    return BalancerDecision(
      state: state,
      picker: ConstantPicker(state == .connecting ? .wait : .fail(summary.failureMessage)),
      connect: summary.idle
    )
  }
}
