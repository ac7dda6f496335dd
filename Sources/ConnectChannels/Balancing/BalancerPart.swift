/// One child of a balancer with children, as snapshots show it.
public struct BalancerPart: Sendable, Hashable {
  /// The child's name: of a priority, a target or a zone.
  public var name: String
  /// gRPC's name of the child's policy.
  public var policy: String
  /// The child's state; `idle` if it was not needed yet.
  public var state: ConnectivityState
  /// How many endpoints belong to the child.
  public var endpoints: Int
  /// How many of them can take calls.
  public var ready: Int
  /// The child's share of the parent's calls, from 0 to 1.
  public var share: Double
  /// The children of the child.
  public var parts: [BalancerPart]

  /// A part as given.
  public init(
    name: String,
    policy: String,
    state: ConnectivityState,
    endpoints: Int,
    ready: Int,
    share: Double,
    parts: [BalancerPart] = []
  ) {
    self.name = name
    self.policy = policy
    self.state = state
    self.endpoints = endpoints
    self.ready = ready
    self.share = share
    self.parts = parts
  }
}
