public import Foundation

/// What became of the calls of a simulation.
///
/// `description` is for people, with small plots over time; the report is `Codable` for programs. The same seed and program give
/// the same report.
public struct SimulationReport: Sendable, Hashable, Codable {
  /// Latencies of calls that succeeded, in milliseconds; nil where there were none.
  public struct Latencies: Sendable, Hashable, Codable {
    public var p50: Double?
    public var p90: Double?
    public var p99: Double?
    public var p999: Double?
    public var maximum: Double?
  }

  /// A part of the time. Calls count where they end.
  public struct Interval: Sendable, Hashable, Codable {
    /// Since the run began, in seconds.
    public var start: Double
    public var succeeded: Int
    public var failed: Int
    /// Requests that servers received.
    public var requests: Int
    public var p50: Double?
    public var p99: Double?

    /// The part of calls that succeeded; nil if no call ended.
    public var successRate: Double? {
      let count = self.succeeded + self.failed
      return count > 0 ? Double(self.succeeded) / Double(count) : nil
    }
  }

  public struct Server: Sendable, Hashable, Codable {
    public var address: String
    public var zone: String
    /// Requests that it received.
    public var requests: Int
    /// Of them, those that its handlers have answered: neither refused, nor failed on purpose.
    public var succeeded: Int
    /// How many requests it worked on at the same time at most.
    public var busiest: Int
    /// How many requests waited at the same time at most.
    public var longestQueue: Int
  }

  /// That of the cluster: the same program with the same seed gives the same report.
  public var seed: UInt64
  /// In seconds of virtual time.
  public var duration: Double
  /// A number for all that has happened, in its order.
  public var trace: String
  /// Calls that have ended.
  public var calls: Int
  public var succeeded: Int
  /// Calls that failed, by the name of their code.
  public var failures: [String: Int]
  public var latencies: Latencies
  /// Requests that servers received. Calls may take several, by retries and hedging, or none.
  public var requests: Int
  public var intervals: [Interval]
  public var servers: [Server]
  /// What must never happen and did; see ``SimulatedCluster``. Empty if all is well.
  public var violations: [String]

  /// The part of calls that succeeded, from 0 to 1; 1 if there were none.
  public var successRate: Double { self.calls > 0 ? Double(self.succeeded) / Double(self.calls) : 1 }

  /// How many requests a call took on average.
  public var requestsPerCall: Double { self.calls > 0 ? Double(self.requests) / Double(self.calls) : 0 }

  /// The report as JSON, sorted, so that two of them can be compared line by line.
  ///
  /// - Throws: What `JSONEncoder` throws.
  public func json() throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return try encoder.encode(self)
  }
}
