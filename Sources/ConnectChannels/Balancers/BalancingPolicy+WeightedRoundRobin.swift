internal import Connect

extension BalancingPolicy {
  /// Where the weights of endpoints come from, and for how long they count (gRFC A58).
  public struct WeightedRoundRobin: Sendable, Hashable {
    /// Where the weights of endpoints come from.
    public enum Source: Sendable, Hashable {
      /// The resolver: ``Endpoint/weight``. A weight counts for at most 32 times the mean.
      case resolver
      /// The servers' load reports, so that all are used equally: see ``LoadReport/weight(errorPenalty:)``. A weight
      /// counts for at least a hundredth and at most ten times the mean.
      case reports
    }

    /// Where the weights come from. ``Source/reports`` by default.
    public var source: Source
    /// How often servers report on a separate stream (`xds.service.orca.v3.OpenRcaService/StreamCoreMetrics`, gRFC
    /// A51); nil for reports with each call. It needs HTTP/2. Servers may report less often than they are asked to.
    public var outOfBandPeriod: Duration?
    /// How long an endpoint must have reported before its weight is used.
    public var blackoutPeriod: Duration
    /// How long a weight is used after the last report.
    public var expirationPeriod: Duration
    /// How often weights are computed; at least 100 ms.
    public var updatePeriod: Duration
    /// The utilization that is added if all calls of an endpoint fail; not negative.
    public var errorPenalty: Double

    /// Weights as given: by default from reports with each call, as ``defaults`` has it. Values out of range count as
    /// the nearest that is allowed.
    public init(
      source: Source = .reports,
      outOfBandPeriod: Duration? = nil,
      blackoutPeriod: Duration = .seconds(10),
      expirationPeriod: Duration = .seconds(180),
      updatePeriod: Duration = .seconds(1),
      errorPenalty: Double = 1
    ) {
      self.source = source
      self.outOfBandPeriod = outOfBandPeriod?.clamped
      self.blackoutPeriod = blackoutPeriod.clamped
      self.expirationPeriod = expirationPeriod.clamped
      self.updatePeriod = max(updatePeriod.clamped, .milliseconds(100))
      self.errorPenalty = max(0, errorPenalty)
    }

    /// Weights from reports with each call, updated every second.
    public static var defaults: WeightedRoundRobin { WeightedRoundRobin() }
  }
}
