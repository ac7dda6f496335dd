internal import Connect

extension BalancingPolicy {
  /// When calls leave the caller's own zone, and where they go: Envoy's rule for two priority levels, the own zone and
  /// all others, with weights of zones in the second.
  ///
  /// | | |
  /// | --- | --- |
  /// | availability of a zone | min(1, ``overprovisioning`` × healthy endpoints / all its endpoints) |
  /// | availability of the others | the same with the endpoints of all other zones together |
  /// | share of the own zone | its availability |
  /// | share of the others | min(1 − share of the own zone, availability of the others) |
  /// | if both together are less than 1 | both are scaled up to 1 |
  /// | share of one of the others | in proportion to weight × availability |
  /// | weight of a zone | ``zoneWeights``, else the sum of the weights of its endpoints |
  ///
  /// With 10 endpoints and a factor of 1.4, all calls stay in the own zone while 8 of them work. With 7 it gets 98 %, with 5
  /// it gets 70 %, with 1 it gets 14 %.
  ///
  /// An endpoint is healthy while it is ready and not ejected. Besides, an endpoint that was never tried counts for its first 10 s,
  /// so that a start does not spill over; an endpoint that connects again counts for 1 s, so that the renewal of a
  /// connection does not. One that waits for its first call is healthy, too: that call has it connect. Endpoints that the policy of
  /// the zone does not need, such as those of a later priority, do not count.
  ///
  /// The other zones connect when the share of the own one is below 1. Until one of them is ready, all calls go to the own zone. If no
  /// endpoint of the own zone is ready, all calls go to the others. Once its share is 1 again, the others keep
  /// their connections for 15 minutes.
  ///
  /// If the own zone is not known, or has no endpoints, all zones are others.
  public struct ZoneAware: Sendable, Hashable {
    /// How many times its even share of calls an endpoint can serve: at least 1. 1.4 by default, as in Envoy.
    public let overprovisioning: Double
    /// The weights of zones by name, in place of those of their endpoints. A zone with the weight 0 gets no calls, also if it is
    /// the own one.
    public var zoneWeights: [String: UInt32]
    /// How often a failed endpoint of the own zone is tried again while calls leave the zone, whatever its backoff: the
    /// endpoints take turns. Once one is ready again all are tried. At least 10 ms.
    public let probePeriod: Duration

    /// Settings as given. Values out of range count as the nearest that is allowed.
    public init(
      overprovisioning: Double = 1.4,
      zoneWeights: [String: UInt32] = [:],
      probePeriod: Duration = .milliseconds(500)
    ) {
      // Not-a-number counts as 1.
      self.overprovisioning = overprovisioning > 1 ? overprovisioning : 1
      self.zoneWeights = zoneWeights
      self.probePeriod = max(probePeriod.clamped, .milliseconds(10))
    }

    /// A factor of 1.4, weights of the endpoints, and a probe every 500 ms.
    public static var defaults: ZoneAware { ZoneAware() }
  }
}
