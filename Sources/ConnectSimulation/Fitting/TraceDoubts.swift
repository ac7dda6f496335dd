internal import Connect
internal import Foundation

/// What a trace leaves open, in words.
enum TraceDoubts {
  /// Most methods take longer, and no call is as long.
  private static let usualMedians = 0.000_1...100
  /// With fewer seconds that have calls, the mean load is no load that there was.
  private static let leastBusy = 0.2

  /// - Parameter rates: The calls in a second over time, as they are simulated.
  static func notes(_ trace: TrafficTrace, simulated rates: [Double]) -> [String] {
    var notes: [String] = []
    func count(_ doubt: TracedCall.Doubt) -> Int { trace.doubts[doubt] ?? 0 }
    let calls = max(trace.total.calls, 1)
    if count(.unitless) * 2 > calls {
      let median = trace.total.percentile(0.5)?.seconds ?? 0.01
      let figure = Plot.number(median * 1e3)
      notes.append(
        self.usualMedians.contains(median)
          ? "durations have no unit: half of them are below \(figure) ms if the unit is right (give another one if not)"
          : "WARNING: durations have no unit, and the median would be \(figure) ms: give the right unit"
      )
    }
    if count(.httpStatus) == trace.total.calls, trace.methods.keys.contains(where: self.isOfRPC) {
      notes.append(
        "the trace has statuses of HTTP alone: calls of gRPC that failed count as successes (let the log have grpc-status)"
      )
    }
    if count(.emptyStatus) > 0 {
      notes.append(
        "\(Plot.count(count(.emptyStatus))) calls have an empty status of gRPC: they count as failures of an unknown code (let nginx "
          + "log $sent_http_grpc_status as well)"
      )
    }
    if trace.otherLines > 0 {
      notes.append("\(Plot.count(trace.otherLines)) of the lines say nothing about a call")
    }
    for (table, what) in [(trace.methods, "methods"), (trace.servers, "servers")] {
      guard let others = table[TrafficTrace.others] else { continue }
      notes.append(
        "the trace has more than \(Plot.count(TrafficTrace.maximumMethods)) \(what): \(Plot.count(others.calls)) calls are of "
          + (what == "methods"
            ? "further ones, which count as one"
            : "further ones, which are left out (say how many there are)")
      )
    }
    let parts = trace.timeline.parts
    let busy = parts.count { $0.calls > 0 }
    // How many parts calls fill that come at any time.
    let expected = 1 - exp(-Double(trace.timeline.calls) / Double(max(parts.count, 1)))
    if trace.timeline.calls > 100, Double(busy) < Double(parts.count) * min(self.leastBusy, expected / 2) {
      notes.append(
        "calls came in \(Plot.percent(Double(busy) / Double(parts.count))) of the time: \(Plot.number(trace.callsPerSecond)) a second "
          + "is their mean over all of it (give the load that you ask about)"
      )
    }
    let busiest = Double(parts.map(\.calls).max() ?? 0) / Double(trace.timeline.length)
    if trace.timeline.calls > 100, busiest > max((rates.max() ?? 0) * 3, 20) {
      notes.append(
        "the busiest second had \(Plot.number(busiest)) calls, and the busiest part of the simulation has "
          + "\(Plot.number(rates.max() ?? 0)) a second: peaks as short are left out"
      )
    }
    return notes + self.phases(trace.timeline) + self.shares(trace)
  }

  /// Servers that get fewer or more calls than they get in the simulation.
  private static func shares(_ trace: TrafficTrace) -> [String] {
    let servers = trace.servers.filter { $0.key != TrafficTrace.others }.sorted {
      ($0.value.calls, $0.key) < ($1.value.calls, $1.key)
    }
    let calls = servers.reduce(0) { $0 + $1.value.calls }
    guard let least = servers.first, let most = servers.last, calls >= 100 * servers.count,
      most.value.calls > 2 * least.value.calls
    else { return [] }
    func share(_ tally: TrafficTrace.Tally) -> String { Plot.percent(Double(tally.calls) / Double(calls)) }
    return [
      "servers have from \(share(least.value)) (\(least.key)) to \(share(most.value)) (\(most.key)) of the calls: in the simulation, "
        + "calls go to all servers alike, unless the service config says otherwise"
    ]
  }

  /// Times of which one is slower than another, though it has no more load.
  private static func phases(_ timeline: Timeline) -> [String] {
    let parts = timeline.parts
    let quarters = (0..<4).compactMap { number -> (median: Double, calls: Int)? in
      var sum = Timeline.Part()
      for part in parts[number * parts.count / 4..<(number + 1) * parts.count / 4] { sum.add(part) }
      guard sum.calls >= 200, let median = sum.latencies.quantile(0.5) else { return nil }
      return (median, sum.calls)
    }
    guard parts.count >= 8, let fast = quarters.min(by: { $0.median < $1.median }),
      let slow = quarters.max(by: { $0.median < $1.median }), slow.median > fast.median * 2,
      Double(slow.calls) < Double(fast.calls) * 1.2
    else { return [] }
    return [
      "WARNING: the median is \(Plot.number(fast.median * 1e3)) ms in one part of the time and \(Plot.number(slow.median * 1e3)) ms in "
        + "another with no more load: the fit mixes both; give the part that you ask about"
    ]
  }

  /// `/package.Service/Method`.
  private static func isOfRPC(_ path: String) -> Bool {
    let parts = path.split(separator: "/")
    return parts.count == 2 && parts[0].contains(".")
  }
}
