/// Which calls are kept away from servers, and what is counted of the others.
public struct CallLimits: Sendable, Hashable {
  /// A part of the calls that is not made.
  public struct Drop: Sendable, Hashable {
    /// Why, for errors and metrics.
    public var category: String
    /// How many of a million calls.
    public var perMillion: UInt32

    /// Drops a part of the calls.
    public init(category: String, perMillion: UInt32) {
      self.category = category
      self.perMillion = perMillion
    }
  }

  /// Each call is tried against them in this order.
  public var drops: [Drop]
  /// How many calls may be in flight at the same time, over all event loops; nil, the default, for any number (gRFC A32).
  public var maximumCalls: UInt32?
  /// Counts the calls. Policies with the same object share the limit of calls in flight.
  public var statistics: CallStatistics

  /// Limits.
  public init(drops: [Drop] = [], maximumCalls: UInt32? = nil, statistics: CallStatistics) {
    self.drops = drops
    self.maximumCalls = maximumCalls
    self.statistics = statistics
  }
}
