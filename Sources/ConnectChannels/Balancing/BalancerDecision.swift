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
  /// Endpoints whose connections are not needed now: they close once they have no calls for a while. What is not in this list
  /// stays connected as the policy says.
  public var rest: [EndpointID] = []
  /// Endpoints that should connect at once, even if the backoff after their last failure is not over.
  public var probe: [EndpointID] = []
  /// The parts of a policy with children, for snapshots.
  public var parts: [BalancerPart] = []

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
