internal import Connect

/// When an endpoint is an outlier, and for how long it gets no calls: the fields and defaults of gRFC A50.
public struct OutlierDetection: Sendable, Hashable {
  /// Ejects endpoints whose success rate is far below the mean of all endpoints.
  public struct SuccessRate: Sendable, Hashable {
    /// How many standard deviations below the mean makes an endpoint an outlier; not negative.
    public var deviations: Double
    /// How often an outlier is ejected, in percent.
    public var enforcement: Int
    /// How many endpoints must have had enough calls.
    public var minimumHosts: Int
    /// How many calls within an interval are enough.
    public var minimumCalls: Int

    /// The algorithm with gRPC's defaults for what is left out.
    public init(
      deviations: Double = 1.9,
      enforcement: Int = 100,
      minimumHosts: Int = 5,
      minimumCalls: Int = 100
    ) {
      self.deviations = max(0, deviations)
      self.enforcement = enforcement
      self.minimumHosts = minimumHosts
      self.minimumCalls = minimumCalls
    }
  }

  /// Ejects endpoints of which many calls fail, whatever the others do.
  public struct FailurePercentage: Sendable, Hashable {
    /// The percentage of failures from which on an endpoint is an outlier.
    public var threshold: Int
    /// How often an outlier is ejected, in percent.
    public var enforcement: Int
    /// How many endpoints must have had enough calls.
    public var minimumHosts: Int
    /// How many calls within an interval are enough.
    public var minimumCalls: Int

    /// The algorithm with gRPC's defaults for what is left out.
    public init(threshold: Int = 85, enforcement: Int = 100, minimumHosts: Int = 5, minimumCalls: Int = 50) {
      self.threshold = threshold
      self.enforcement = enforcement
      self.minimumHosts = minimumHosts
      self.minimumCalls = minimumCalls
    }
  }

  /// How often endpoints are checked; at least 1 ms.
  public var interval: Duration
  /// For how long an endpoint is ejected, multiplied by how often it was ejected recently.
  public var baseEjectionTime: Duration
  /// For how long an endpoint is ejected at most; not below ``baseEjectionTime``.
  public var maximumEjectionTime: Duration
  /// How many endpoints may be ejected at the same time, in percent and rounded down, but always one.
  public var maximumEjectionPercent: Int
  /// The algorithm that compares endpoints with each other; nil switches it off.
  public var successRate: SuccessRate?
  /// The algorithm that looks at each endpoint by itself; nil switches it off.
  public var failurePercentage: FailurePercentage?

  /// Outlier detection with gRPC's defaults for what is left out. Values out of range count as the nearest that is
  /// allowed.
  public init(
    interval: Duration = .seconds(10),
    baseEjectionTime: Duration = .seconds(30),
    maximumEjectionTime: Duration = .seconds(300),
    maximumEjectionPercent: Int = 10,
    successRate: SuccessRate? = SuccessRate(),
    failurePercentage: FailurePercentage? = FailurePercentage()
  ) {
    self.interval = max(interval.clamped, .milliseconds(1))
    self.baseEjectionTime = max(baseEjectionTime.clamped, .zero)
    self.maximumEjectionTime = max(maximumEjectionTime.clamped, self.baseEjectionTime)
    self.maximumEjectionPercent = min(max(maximumEjectionPercent, 0), 100)
    self.successRate = successRate
    self.failurePercentage = failurePercentage
  }

  /// Both algorithms, every 10 s; 30 s to 300 s for at most 10 % of the endpoints.
  public static var defaults: OutlierDetection { OutlierDetection() }

  /// Whether there is anything to count for.
  public var isActive: Bool { self.successRate != nil || self.failurePercentage != nil }
}
