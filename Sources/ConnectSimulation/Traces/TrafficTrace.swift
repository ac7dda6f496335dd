public import Connect

/// What a service did, as it was recorded: counts and distributions, so that it takes the same memory for any number of calls.
///
/// A ``TraceReader`` makes it, of access logs, OTLP traces, reports of `connectrpc load`, and cassettes.
///
/// ```swift
/// let trace = try TrafficTrace(contentsOf: "access.ndjson")
/// print(trace)
/// ```
public struct TrafficTrace: Sendable, Hashable {
  /// What is counted of the calls of a method, of a server, or of all.
  public struct Tally: Sendable, Hashable {
    /// How many calls there were.
    public internal(set) var calls = 0
    /// How many calls failed, by their code.
    public internal(set) var failures: [Code: Int] = [:]
    /// The durations of calls that succeeded, and of calls that failed.
    var (succeeded, failed) = (Histogram(), Histogram())
    /// Attempts of the calls for which the trace has them.
    var attempts = 0
    var callsWithAttempts = 0
    /// The durations of single attempts that succeeded and failed, where the trace has them.
    var (succeededAttempts, failedAttempts) = (Histogram(), Histogram())
    var failedAttemptCodes: [Code: Int] = [:]

    /// The duration that a part of the calls that succeeded does not exceed; nil if none succeeded.
    ///
    /// - Parameter part: From 0 to 1.
    public func percentile(_ part: Double) -> Duration? { self.succeeded.percentile(part) }

    /// The part of calls that failed, from 0 to 1; 0 if there were none.
    public var failureRate: Double {
      self.calls > 0 ? Double(self.failures.values.reduce(0, +)) / Double(self.calls) : 0
    }

    /// How many attempts a call took on average; nil if the trace does not say.
    public var attemptsPerCall: Double? {
      self.callsWithAttempts > 0 ? Double(self.attempts) / Double(self.callsWithAttempts) : nil
    }

    mutating func add(_ call: TracedCall) {
      self.calls += call.count
      if call.code == .ok {
        self.succeeded.add(call.duration, count: call.count)
      } else {
        self.failures[call.code, default: 0] += call.count
        self.failed.add(call.duration, count: call.count)
      }
      if let attempts = call.attempts {
        self.attempts += attempts * call.count
        self.callsWithAttempts += call.count
      }
      for attempt in call.attemptEnds {
        if attempt.code == .ok {
          self.succeededAttempts.add(attempt.duration)
        } else {
          self.failedAttempts.add(attempt.duration)
          self.failedAttemptCodes[attempt.code, default: 0] += 1
        }
      }
    }

    mutating func add(_ other: Tally) {
      self.calls += other.calls
      self.failures.merge(other.failures, uniquingKeysWith: +)
      self.succeeded.add(other.succeeded)
      self.failed.add(other.failed)
      self.attempts += other.attempts
      self.callsWithAttempts += other.callsWithAttempts
      self.succeededAttempts.add(other.succeededAttempts)
      self.failedAttempts.add(other.failedAttempts)
      self.failedAttemptCodes.merge(other.failedAttemptCodes, uniquingKeysWith: +)
    }
  }

  /// A method on a server.
  struct Place: Hashable {
    var method: String
    var server: String
  }

  /// How many methods, servers, and methods on servers are counted on their own.
  static let maximumMethods = 1_000
  static let maximumPlaces = 1_000
  /// Stands for the methods, or servers, that have no place of their own.
  public static let others = "(others)"

  /// All calls.
  public internal(set) var total = Tally()
  /// By the method's path, such as `/package.Service/Method`. From 1,000 methods on, further ones are in ``others``.
  public internal(set) var methods: [String: Tally] = [:]
  /// By the server's name, as the trace has it; empty if it has none. Limited as ``methods``.
  public internal(set) var servers: [String: Tally] = [:]
  /// The zones of servers, as the trace last has them; servers without one are not in it.
  public internal(set) var zones: [String: String] = [:]
  /// Empty if there are too many of them.
  var places: [Place: Tally] = [:]
  /// Whether methods on servers are not counted any more.
  var hasTooManyPlaces = false
  /// The calls over time.
  var timeline = Timeline()
  /// The time between client and server in both directions, of calls for which the trace has both sides.
  var network = Histogram()
  /// What could not be read.
  public internal(set) var mistakes = Mistakes()
  /// How many lines of access logs were not about calls.
  var otherLines = 0
  /// How many calls there are about which something is assumed.
  var doubts: [TracedCall.Doubt: Int] = [:]
  /// Whether distributions are made of some percentiles, as in the report of `connectrpc load`.
  public internal(set) var isApproximate = false

  init() {}

  /// How long it takes, in seconds: from the beginning of the first call to that of the last one. Zero if the trace has no times.
  public var seconds: Double { self.timeline.seconds }

  /// How many calls began in a second, on average; zero if the trace has no times.
  public var callsPerSecond: Double {
    self.seconds > 0 ? Double(self.timeline.calls) / self.seconds : 0
  }

  /// How many calls were under way on average; zero if the trace has no times.
  public var concurrency: Double { self.seconds > 0 ? self.timeline.busySeconds / self.seconds : 0 }

  mutating func add(_ call: TracedCall) {
    self.total.add(call)
    let method = Self.add(call, to: call.method, in: &self.methods)
    if let name = call.server {
      let server = Self.add(call, to: name, in: &self.servers)
      if let zone = call.zone, server == name { self.zones[server] = zone }
      self.add(call, to: Place(method: method, server: server))
    }
    if let start = call.start { self.timeline.add(call, at: start) }
    if let network = call.network { self.network.add(network) }
    for doubt in call.doubts { self.doubts[doubt, default: 0] += call.count }
  }

  private mutating func add(_ call: TracedCall, to place: Place) {
    guard !self.hasTooManyPlaces else { return }
    if let index = self.places.index(forKey: place) {
      self.places.values[index].add(call)
    } else if self.places.count < Self.maximumPlaces {
      self.places[place, default: Tally()].add(call)
    } else {
      (self.hasTooManyPlaces, self.places) = (true, [:])
    }
  }

  /// - Returns: The key that the call counts for.
  private static func add(_ call: TracedCall, to name: String, in table: inout [String: Tally]) -> String {
    if let index = table.index(forKey: name) {
      table.values[index].add(call)
      return name
    }
    let key = self.key(name, in: table)
    table[key, default: Tally()].add(call)
    return key
  }

  private static func key(_ name: String, in table: [String: Tally]) -> String {
    table[name] != nil || table.count < self.maximumMethods ? name : self.others
  }

  /// Adds the calls of another trace, such as that of another server.
  public mutating func merge(_ other: TrafficTrace) {
    self.total.add(other.total)
    for (name, tally) in other.methods.sorted(by: { $0.key < $1.key }) {
      self.methods[Self.key(name, in: self.methods), default: Tally()].add(tally)
    }
    for (name, tally) in other.servers.sorted(by: { $0.key < $1.key }) {
      self.servers[Self.key(name, in: self.servers), default: Tally()].add(tally)
    }
    self.places.merge(other.places) { one, two in
      var sum = one
      sum.add(two)
      return sum
    }
    self.hasTooManyPlaces =
      self.hasTooManyPlaces || other.hasTooManyPlaces || self.places.count > Self.maximumPlaces
    if self.hasTooManyPlaces { self.places = [:] }
    for (server, zone) in other.zones where self.servers[server] != nil { self.zones[server] = zone }
    self.timeline.add(other.timeline)
    self.network.add(other.network)
    self.mistakes.add(other.mistakes)
    self.otherLines += other.otherLines
    self.doubts.merge(other.doubts, uniquingKeysWith: +)
    self.isApproximate = self.isApproximate || other.isApproximate
  }
}

/// A call as a reader of traces finds it.
struct TracedCall {
  struct AttemptEnd {
    var duration: Duration
    var code: Code
  }

  /// What is assumed of a call.
  enum Doubt: Sendable {
    /// It has succeeded, by the status of HTTP alone.
    case httpStatus
    /// It has failed, since nginx found no status in its trailers.
    case emptyStatus
    /// The log does not say the unit of its duration.
    case unitless
  }

  var method: String
  var server: String?
  /// The server's zone.
  var zone: String?
  /// In seconds since 1970; nil if it is not known.
  var start: Double?
  var duration: Duration
  var code: Code
  var attempts: Int?
  /// The single attempts, if the trace has them.
  var attemptEnds: [AttemptEnd] = []
  var network: Duration?
  /// How many calls like this there were.
  var count = 1
  var doubts: Set<Doubt> = []
}
