internal import Synchronization

/// Counts the calls to a set of servers. It may be shared by all event loops, and by several channels.
///
/// An attempt of a call counts from its start at a server to its end. It has succeeded if its HTTP status is 200 and its headers
/// and trailers have no other `grpc-status` than 0. An attempt that its caller gives up has failed. An error at the end of a
/// stream's body (Connect, gRPC-Web) is not seen here.
public final class CallStatistics: Sendable, Hashable {
  private struct State {
    var zones = CounterTable<CallCounter>()
    var drops = CounterTable<DropCounter>()
  }

  /// The name of the set of servers, for metrics.
  public let cluster: String
  /// What limits look at.
  let inFlight = CallsInFlight()
  private let refused = Atomic<UInt64>(0)
  private let state = Mutex(State())

  /// Nothing is counted yet.
  public init(cluster: String) {
    self.cluster = cluster
  }

  public static func == (left: CallStatistics, right: CallStatistics) -> Bool { left === right }

  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }

  /// What counts the calls to a zone. Policies keep it, so that calls take no lock.
  func counter(of zone: String) -> CallCounter {
    self.state.withLock { $0.zones.counter(of: zone) { CallCounter(within: self.inFlight) } }
  }

  /// What counts the calls that are dropped for a reason.
  func dropCounter(of category: String) -> DropCounter {
    self.state.withLock { $0.drops.counter(of: category) { DropCounter() } }
  }

  /// A call was not made as too many were in flight.
  func refuse() { self.refused.wrappingAdd(1, ordering: .relaxed) }
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

    /// By ``Endpoint/zone``; endpoints without one have the empty text. Zones without calls are left out.
    public var zones: [String: Zone] = [:]
    /// Calls that were dropped, by category.
    public var drops: [String: UInt64] = [:]
    /// Calls that were dropped as too many were in flight.
    public var refused: UInt64 = 0

    /// No calls.
    public init() {}
  }

  /// The counts since the last time. May be called from any thread; each call is counted once.
  public func take() -> Counts {
    var counts = Counts()
    counts.refused = self.refused.exchange(0, ordering: .relaxed)
    self.state.withLock { state in
      state.zones.take { zone, counter in
        let calls = counter.take()
        if calls != Counts.Zone() { counts.zones[zone] = calls }
        return calls == Counts.Zone()
      }
      state.drops.take { category, counter in
        let count = counter.take()
        if count > 0 { counts.drops[category] = count }
        return count == 0
      }
    }
    return counts
  }
}
