/// Which calls are kept away from servers, and what is counted of the others.
///
/// A call that is dropped fails at once with `unavailable`, and is not retried: see ``PickResult/drop(category:cluster:)``. A call
/// that waits keeps its luck: it is not tried against the drops again with each change of the servers.
public struct CallLimits: Sendable, Hashable {
  /// The category of calls that are dropped since too many are in flight; see ``PickResult/drop(category:cluster:)``.
  public static let circuitBreaking = "circuit_breaking"

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
  /// How many calls may be in flight at the same time, over all event loops; nil, the default, for any number (gRFC A32). Attempts
  /// that wait for a connection to the server that was chosen for them count, too. Event loops that start calls at the same moment
  /// may go past the limit by one call each.
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
