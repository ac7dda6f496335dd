internal import Synchronization

/// Counts the calls to a set of servers. It may be shared by all event loops, and by several channels.
public final class CallStatistics: Sendable, Hashable {
  /// The name of the set of servers, for metrics.
  public let cluster: String

  /// Nothing is counted yet.
  public init(cluster: String) {
    self.cluster = cluster
  }

  public static func == (left: CallStatistics, right: CallStatistics) -> Bool { left === right }

  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

extension CallStatistics {
  /// What has happened since the last ``take()``.
  public struct Counts: Sendable, Hashable {
    /// Calls to the servers of a zone.
    public struct Zone: Sendable, Hashable {
      /// Calls that have begun.
      public var issued: UInt64 = 0
      /// Calls that have ended well.
      public var succeeded: UInt64 = 0
      /// Calls that have ended otherwise.
      public var failed: UInt64 = 0
      /// Calls in flight now.
      public var inFlight: UInt64 = 0

      /// No calls.
      public init() {}
    }

    /// By ``Endpoint/zone``; endpoints without one have the empty text.
    public var zones: [String: Zone] = [:]
    /// Calls that were dropped, by category.
    public var drops: [String: UInt64] = [:]
    /// Calls that were dropped as too many were in flight.
    public var refused: UInt64 = 0

    /// No calls.
    public init() {}
  }

  /// The counts since the last time.
  public func take() -> Counts { Counts() }
}
