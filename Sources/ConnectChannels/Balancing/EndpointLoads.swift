/// The calls in flight and the load reports of a channel's endpoints. Channels give endpoints the smallest free slots; an
/// endpoint with a slot of a million or more is not counted.
///
/// Confined to the event loop of the channel, which updates it with each call; pickers read it. Not thread-safe.
public final class EndpointLoads {
  /// The reports of an endpoint since it has begun to send usable ones.
  public struct Reports: Sendable, Hashable {
    /// The last usable report.
    public internal(set) var latest: LoadReport
    /// When the last usable report arrived, in the time of ``BalancerContext/now``.
    public internal(set) var latestTime: Duration
    /// When the first usable report arrived, in the time of ``BalancerContext/now``.
    public internal(set) var firstTime: Duration
  }

  /// Small, since pickers read entries anywhere in a large table.
  private struct Calls {
    var generation: UInt32 = 0
    var count: UInt32 = 0
  }

  /// The tables have an entry for each slot up to the largest one.
  private static let slotLimit = 1_000_000

  /// Each call changes it twice, so exclusivity is not checked at run time. That is safe: nothing here calls out.
  @exclusivity(unchecked) private var calls: [Calls] = []
  /// As many as `calls`.
  private var reports: [Reports?] = []

  /// The loads of endpoints, for tests of balancers. Channels begin with none.
  ///
  /// - Parameters:
  ///   - calls: How many calls are in flight.
  ///   - reports: The last reports.
  ///   - time: When the reports arrived, in the time of ``BalancerContext/now``.
  public init(
    calls: [EndpointID: Int] = [:],
    reports: [EndpointID: LoadReport] = [:],
    at time: Duration = .zero
  ) {
    for (id, count) in calls where self.occupy(id) { self.calls[id.slot].count = UInt32(clamping: count) }
    for (id, report) in reports { self.record(report, of: id, now: time) }
  }

  /// A call was sent to the endpoint.
  package func callBegan(_ id: EndpointID) {
    if self.occupy(id) { self.calls[id.slot].count += 1 }
  }

  /// A call that was counted is over.
  package func callEnded(_ id: EndpointID) {
    if self.calls(of: id) > 0 { self.calls[id.slot].count -= 1 }
  }

  /// How many calls are in flight.
  public func calls(of id: EndpointID) -> Int {
    guard id.slot < self.calls.count else { return 0 }
    let calls = self.calls[id.slot]
    return calls.generation == id.generation ? Int(calls.count) : 0
  }

  /// The endpoint has reported its load. Reports that give no weight are ignored.
  package func record(_ report: LoadReport, of id: EndpointID, now: Duration) {
    guard report.isUsable, self.occupy(id) else { return }
    let first = self.reports[id.slot]?.firstTime ?? now
    self.reports[id.slot] = Reports(latest: report, latestTime: now, firstTime: first)
  }

  /// The reports of an endpoint; nil if it has sent none that is usable, or has left the channel.
  public func reports(of id: EndpointID) -> Reports? {
    self.isCurrent(id) ? self.reports[id.slot] : nil
  }

  /// The reports so far do not count any more.
  package func forgetReports(of id: EndpointID) {
    if self.isCurrent(id) { self.reports[id.slot] = nil }
  }

  private func isCurrent(_ id: EndpointID) -> Bool {
    id.slot < self.calls.count && self.calls[id.slot].generation == id.generation
  }

  /// Gives the slot to the endpoint. False if a later endpoint has it, as with late events of an earlier endpoint.
  private func occupy(_ id: EndpointID) -> Bool {
    guard id.slot < Self.slotLimit else { return false }
    while self.calls.count <= id.slot {
      self.calls.append(Calls())
      self.reports.append(nil)
    }
    let generation = self.calls[id.slot].generation
    if generation < id.generation {
      self.calls[id.slot] = Calls(generation: id.generation)
      self.reports[id.slot] = nil
    }
    return generation <= id.generation
  }
}
