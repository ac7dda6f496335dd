/// What a balancer can use in an update beside the endpoints.
public struct BalancerContext {
  /// The time since some fixed point.
  public let now: Duration
  public var random: SplitMix64
  /// Calls and load reports of the endpoints. Pickers may keep it.
  public let loads: EndpointLoads
  /// Whether the user has asked for a connection: a policy that connects lazily should begin then (gRFC A117).
  public let wantsConnection: Bool

  public init(
    now: Duration,
    random: SplitMix64,
    loads: EndpointLoads,
    wantsConnection: Bool = false
  ) {
    self.now = now
    self.random = random
    self.loads = loads
    self.wantsConnection = wantsConnection
  }
}
