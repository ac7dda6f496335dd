public import Foundation

/// What became of the calls of a simulation.
///
/// `description` is for people, with small plots over time; the report is `Codable` for programs. The same seed and program give
/// the same report.
public struct SimulationReport: Sendable, Hashable, Codable {
  /// Latencies of calls that succeeded, in milliseconds; nil where there were none.
  public struct Latencies: Sendable, Hashable, Codable {
    /// The median, in milliseconds.
    public var p50: Double?
    /// The 90th percentile, in milliseconds.
    public var p90: Double?
    /// The 99th percentile, in milliseconds.
    public var p99: Double?
    /// The 99.9th percentile, in milliseconds.
    public var p999: Double?
    /// The longest latency, in milliseconds.
    public var maximum: Double?
  }

  /// A part of the time. Calls count where they end.
  public struct Interval: Sendable, Hashable, Codable {
    /// Since the run began, in seconds.
    public var start: Double
    /// Calls that succeeded.
    public var succeeded: Int
    /// Calls that failed.
    public var failed: Int
    /// Requests that servers received.
    public var requests: Int
    /// The median latency of calls that succeeded, in milliseconds; nil if none did.
    public var p50: Double?
    /// The 99th percentile of their latencies, in milliseconds; nil if none succeeded.
    public var p99: Double?

    /// The part of calls that succeeded; nil if no call ended.
    public var successRate: Double? {
      let count = self.succeeded + self.failed
      return count > 0 ? Double(self.succeeded) / Double(count) : nil
    }
  }

  /// What one server did in the run.
  public struct Server: Sendable, Hashable, Codable {
    /// The server's address and port.
    public var address: String
    /// Where the server runs.
    public var zone: String
    /// Requests that the server received.
    public var requests: Int
    /// Requests that the server's handlers have answered: neither refused, nor failed on purpose.
    public var succeeded: Int
    /// The largest number of requests that the server worked on at the same time.
    public var busiest: Int
    /// The largest number of requests that waited at the same time.
    public var longestQueue: Int
  }

  /// The requests from the clients of one zone to the servers of one zone, which may be the same.
  public struct Traffic: Sendable, Hashable, Codable {
    /// The clients' zone.
    public var from: String
    /// The servers' zone.
    public var to: String
    /// Requests that servers received.
    public var requests: Int
  }

  /// The cluster's seed: the same program with the same seed gives the same report.
  public var seed: UInt64
  /// How long the run took, in seconds of virtual time.
  public var duration: Double
  /// A hash of all events in their order. Two runs with the same trace did the same.
  public var trace: String
  /// Calls that have ended.
  public var calls: Int
  /// Calls that succeeded.
  public var succeeded: Int
  /// Calls that failed, by the name of their code.
  public var failures: [String: Int]
  /// The latencies of the calls that succeeded.
  public var latencies: Latencies
  /// Requests that servers received. Calls may take several, by retries and hedging, or none.
  public var requests: Int
  /// The run in intervals, in order.
  public var intervals: [Interval]
  /// The servers of the cluster.
  public var servers: [Server]
  /// The requests by zones, sorted by the clients' zone, then by the servers' zone.
  public var traffic: [Traffic]
  /// The price of a request to another zone; see ``SimulatedCluster/costOfCrossing``.
  public var costOfCrossing: Double
  /// The events that must never happen and did; see ``SimulatedCluster``. Empty if all is well.
  public var violations: [String]

  /// The part of calls that succeeded, from 0 to 1; 1 if there were none.
  public var successRate: Double { self.calls > 0 ? Double(self.succeeded) / Double(self.calls) : 1 }

  /// Requests that went to a server in another zone than the client's.
  public var crossings: Int { self.traffic.reduce(0) { $1.from == $1.to ? $0 : $0 + $1.requests } }

  /// The part of requests that went to another zone, from 0 to 1; 0 if there were no requests.
  public var crossingShare: Double {
    self.requests > 0 ? Double(self.crossings) / Double(self.requests) : 0
  }

  /// What the requests to other zones cost, in the unit of ``costOfCrossing``.
  public var crossingCost: Double { Double(self.crossings) * self.costOfCrossing }

  /// How many requests a call took on average.
  public var requestsPerCall: Double { self.calls > 0 ? Double(self.requests) / Double(self.calls) : 0 }

  /// The report as JSON, sorted, so that two reports can be compared line by line.
  ///
  /// - Throws: The error of `JSONEncoder`.
  public func json() throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return try encoder.encode(self)
  }
}
