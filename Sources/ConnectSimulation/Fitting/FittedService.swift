public import Connect
internal import ConnectChannels

/// A service as a trace shows it: how long its methods take, how often they fail, how many servers it has, and how busy they may get.
///
/// All figures may be changed before a trial, such as the number of servers, or a limit that the trace does not show:
///
/// ```swift
/// var service = FittedService(trace)
/// service.concurrency = 8
/// let result = try await WhatIf(service, new: newRules).run()
/// ```
public struct FittedService: Sendable {
  /// What a server does with the calls of a method.
  public struct Method: Sendable, Hashable {
    /// Calls that fail with one code.
    public struct Failure: Sendable, Hashable {
      /// The code that callers see.
      public var code: Code
      /// The part of the method's calls, from 0 to 1.
      public var rate: Double
      /// How long these calls take.
      public var latency: Latency
    }

    /// `/package.Service/Method`.
    public var path: String
    /// How many of a thousand calls are of this method, in parts of 1.
    public var share: Double
    /// How long a call that succeeds takes once the server works on it.
    public var latency: Latency
    /// The failures, sorted by code.
    public var failures: [Failure]
  }

  /// A server of the trace.
  public struct Server: Sendable, Hashable {
    /// As the trace has it, or `server 1` and so on.
    public var name: String
    /// What differs from ``FittedService/methods``; empty for a server like the others.
    public var methods: [Method]
    /// The zone, as the trace has it; nil if it has none.
    public var zone: String?
  }

  /// What servers do, the most frequent method first.
  public var methods: [Method]
  /// The servers, sorted by name.
  public var servers: [Server]
  /// How many requests a server works on at the same time; nil if the trace does not show that others wait.
  public var concurrency: Int?
  /// The round-trip time between clients and servers; nothing unless the trace has both sides.
  public var roundTrip: Latency
  /// How many calls begin in a second; zero if the trace has no times.
  public var callsPerSecond: Double
  /// The calls in a second over time, in parts of equal length: at most 60, of at least five seconds each. Their mean is
  /// ``callsPerSecond`` as recorded.
  public var rates: [Double]
  /// Whether servers work on for callers that have gone, by a timeout or with another attempt: true by default, since most servers
  /// stop between steps at best.
  public var finishesAbandonedRequests = true
  /// What was assumed, for people.
  public var notes: [String]
  /// What was recorded, to compare with.
  let trace: TrafficTrace

  /// Fits a service to a trace.
  ///
  /// - Parameters:
  ///   - trace: What was recorded.
  ///   - serverCount: How many servers there are, if the trace does not name all of them; at least 1. Nil, the default, for those of
  ///     the trace, or one.
  public init(_ trace: TrafficTrace, servers serverCount: Int? = nil) {
    self.trace = trace
    var notes: [String] = []
    let names = trace.servers.keys.filter { $0 != TrafficTrace.others }.sorted(by: Self.isBefore)
    let deviating = ServerDifferences(trace, names)
    let count = min(max(serverCount ?? names.count, 1), 10_000)
    if serverCount == nil, names.isEmpty {
      notes.append("the trace names no servers: one is assumed (say how many there are)")
    }
    if trace.isApproximate { notes.append("distributions are made of a few percentiles: less exact") }
    let queue = QueueFit(trace, servers: count)
    self.concurrency = queue.limit
    notes += queue.notes
    let network = trace.network.percentile(0.5) ?? .zero
    if network > .zero {
      self.roundTrip = .empirical(trace.network.quantiles(100))
    } else {
      self.roundTrip = .none
    }
    let fit = MethodFit(trace, withoutQueue: queue, network: network)
    self.methods = fit.methods(without: deviating.names)
    self.servers = (0..<count).map { index in
      guard index < names.count else { return Server(name: "server \(index + 1)", methods: []) }
      let name = names[index]
      let methods = deviating.names.contains(name) ? fit.methods(of: name, in: deviating) : []
      return Server(name: name, methods: methods, zone: trace.zones[name])
    }
    notes += deviating.notes
    notes += Self.zoneNotes(self.servers)
    self.callsPerSecond = trace.callsPerSecond
    self.rates = Self.rates(trace.timeline)
    if let attempts = trace.total.attemptsPerCall, attempts > 1.001, trace.total.succeededAttempts.count == 0
    {
      notes.append(
        "calls of the trace have \(Plot.number(attempts)) attempts, whose times it does not have: calls count as if they were attempts"
      )
    }
    self.notes = notes + TraceDoubts.notes(trace, simulated: self.rates)
  }

  private static func zoneNotes(_ servers: [Server]) -> [String] {
    let zones = Dictionary(grouping: servers.compactMap(\.zone)) { $0 }.mapValues(\.count)
    guard !zones.isEmpty else { return [] }
    var parts = zones.sorted { $0.key < $1.key }.prefix(10).map { "\($0.value) in \($0.key)" }
    if zones.count > parts.count { parts.append("and others in \(zones.count - parts.count) more") }
    let rest = servers.count - zones.values.reduce(0, +)
    if rest > 0 { parts.append("\(rest) in none") }
    return ["zones, as the trace has them: servers are \(parts.joined(separator: ", "))"]
  }

  /// Long enough parts, so that chance does not count twice.
  private static func rates(_ timeline: Timeline) -> [Double] {
    let parts = timeline.parts
    guard !parts.isEmpty else { return [] }
    let count = min(max(parts.count * timeline.length / 5, 1), 60, parts.count)
    return (0..<count).map { index in
      let part = parts[index * parts.count / count..<(index + 1) * parts.count / count]
      return Double(part.reduce(0) { $0 + $1.calls }) / Double(part.count * timeline.length)
    }
  }

  /// Numbers within names count as numbers, so that `server-10` comes behind `server-9`.
  private static func isBefore(_ one: String, _ two: String) -> Bool {
    func key(_ name: String) -> [String] {
      var parts: [String] = []
      var wasDigit = false
      for character in name {
        let isDigit = character.isASCII && character.isNumber
        if parts.isEmpty || isDigit != wasDigit { parts.append("") }
        parts[parts.count - 1].append(character)
        wasDigit = isDigit
      }
      return parts.map { part in
        part.first?.isNumber == true ? String(repeating: "0", count: max(20 - part.count, 0)) + part : part
      }
    }
    return key(one).lexicographicallyPrecedes(key(two))
  }
}

extension FittedService.Method {
  /// The path in a simulation, where ``TrafficTrace/others`` are a method.
  var simulatedPath: String { self.path == TrafficTrace.others ? "/trace/Others" : self.path }
}

/// Does with requests what a ``FittedService`` says.
struct FittedBehaviour: ServerBehaviour {
  private let methods: [String: FittedService.Method]

  init(_ service: FittedService, _ server: FittedService.Server) {
    var methods: [String: FittedService.Method] = [:]
    for method in service.methods + server.methods { methods[method.simulatedPath] = method }
    self.methods = methods
  }

  func work(on path: String, _ random: inout SeededRandom) -> (time: Duration, code: Code?) {
    guard let method = self.methods[path] else { return (.zero, nil) }
    var chance = random.fraction()
    for failure in method.failures {
      if chance < failure.rate { return (failure.latency.sample(&random), failure.code) }
      chance -= failure.rate
    }
    return (method.latency.sample(&random), nil)
  }
}
