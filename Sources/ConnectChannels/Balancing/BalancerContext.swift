/// What a balancer can use in an update besides the endpoints.
public struct BalancerContext {
  /// The time since some fixed point.
  public let now: Duration
  /// A source of random numbers. In a simulation it is seeded, so that runs can be repeated.
  public var random: SeededRandom
  /// Calls and load reports of the endpoints. Pickers may keep it.
  public let loads: EndpointLoads
  /// Whether the user has asked for a connection: a policy that connects lazily should begin then (gRFC A117).
  public let wantsConnection: Bool
  /// Where this client runs; nil if it is not known. See ``ChannelConfiguration/zone``.
  public let zone: String?

  /// A context as a channel makes it for each update, for tests of balancers.
  public init(
    now: Duration,
    random: SeededRandom,
    loads: EndpointLoads,
    wantsConnection: Bool = false,
    zone: String? = nil
  ) {
    self.zone = zone
    self.now = now
    self.random = random
    self.loads = loads
    self.wantsConnection = wantsConnection
  }
}
