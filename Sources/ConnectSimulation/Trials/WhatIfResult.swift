public import Foundation

/// What came of a ``WhatIf``: a table and plots for people, JSON for programs.
public struct WhatIfResult: Sendable, Hashable, Codable {
  /// What one run gave.
  public struct Figures: Sendable, Hashable, Codable {
    /// The seed of the run.
    public var seed: UInt64
    /// A hash of all events; see ``SimulationReport/trace``.
    public var trace: String
    /// Calls that ended.
    public var calls: Int
    /// The part of calls that succeeded, from 0 to 1.
    public var successRate: Double
    /// Calls that failed, by the name of their code.
    public var failures: [String: Int]
    /// The median latency of calls that succeeded, in milliseconds; nil if none did.
    public var p50: Double?
    /// The 90th percentile of these latencies, in milliseconds.
    public var p90: Double?
    /// The 99th percentile of these latencies, in milliseconds.
    public var p99: Double?
    /// Requests that servers received, for each call.
    public var attemptsPerCall: Double
    /// Requests that servers received in the worst second.
    public var requestsInWorstSecond: Int
    /// ``successRate`` in 60 parts of the time; nil where no call ended.
    public var successOverTime: [Double?]
    /// ``p99`` in 60 parts of the time.
    public var p99OverTime: [Double?]
    /// See ``SimulationReport/violations``.
    public var violations: [String]
  }

  /// A policy with changes, or without: a column of the table.
  public struct Trial: Sendable, Hashable, Codable {
    /// `now`, `new`, `changed`, `now, changed`, or `new, changed`.
    public var name: String
    /// One for each seed.
    public var runs: [Figures]

    /// The part of calls that succeeded, on average.
    public var successRate: Double { self.mean(\.successRate) }
    /// Requests that servers received for each call, on average.
    public var attemptsPerCall: Double { self.mean(\.attemptsPerCall) }
    /// The median latency in milliseconds: the middle one of all seeds; nil if no call succeeded.
    public var p50: Double? { Self.middle(self.runs.compactMap(\.p50)) }
    /// The 90th percentile in milliseconds: the middle one of all seeds.
    public var p90: Double? { Self.middle(self.runs.compactMap(\.p90)) }
    /// The 99th percentile in milliseconds: the middle one of all seeds.
    public var p99: Double? { Self.middle(self.runs.compactMap(\.p99)) }
    /// Requests in the worst second: the middle one of all seeds.
    public var requestsInWorstSecond: Double {
      Self.middle(self.runs.map { Double($0.requestsInWorstSecond) }) ?? 0
    }

    private func mean(_ figure: KeyPath<Figures, Double>) -> Double {
      self.runs.reduce(0) { $0 + $1[keyPath: figure] } / Double(max(self.runs.count, 1))
    }

    static func middle(_ values: [Double]) -> Double? {
      values.isEmpty ? nil : values.sorted()[(values.count - 1) / 2]
    }
  }

  /// How well the fitted service explains the trace.
  public struct Quality: Sendable, Hashable, Codable {
    /// The method's path; `all` for all methods.
    public var method: String
    /// How many calls were recorded.
    public var calls: Int
    /// Percentiles in milliseconds, and the part of calls that failed.
    public var recorded: Values
    /// The same in the trial `now`.
    public var predicted: Values

    /// Percentiles of calls that succeeded, and failures.
    public struct Values: Sendable, Hashable, Codable {
      /// The median in milliseconds; nil if no call succeeded.
      public var p50: Double?
      /// The 90th percentile in milliseconds.
      public var p90: Double?
      /// The 99th percentile in milliseconds.
      public var p99: Double?
      /// The part of calls that failed, from 0 to 1.
      public var failureRate: Double
    }
  }

  /// The first seed.
  public var seed: UInt64
  /// For how long calls were made, in seconds of virtual time.
  public var seconds: Double
  /// The recorded load.
  public var callsPerSecond: Double
  /// The names of the servers; changes count them from 0.
  public var servers: [String]
  /// The columns; the first one is `now`.
  public var trials: [Trial]
  /// All methods, then the five most frequent ones.
  public var quality: [Quality]
  /// How many lines of the trace could not be used.
  public var mistakes: Int
  /// What was assumed.
  public var notes: [String]

  /// The trial with a name; nil if there is none.
  public subscript(name: String) -> Trial? { self.trials.first { $0.name == name } }

  /// What no trial has in it.
  public static let notModelled = [
    "what servers share: databases, caches that become cold, locks, processors",
    "slower work under load, other than by waiting for a place on the server",
    "streams and sizes of messages: each call is a unary one without content",
    "methods that call other methods of the trace, and callers that react to failures",
    "balancing and connections of clients that are not this library's",
  ]

  /// The result as JSON, sorted, with the seeds and the figures of each.
  ///
  /// - Throws: The error of `JSONEncoder`.
  public func json() throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return try encoder.encode(self)
  }
}
