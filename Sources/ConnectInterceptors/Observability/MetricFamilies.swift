/// Whose names metrics have. A dashboard that was made for other clients reads the family of these.
public struct MetricFamilies: OptionSet, Sendable, Hashable {
  public let rawValue: Int

  public init(rawValue: Int) { self.rawValue = rawValue }

  /// The semantic conventions of OpenTelemetry for RPC, and names of this library where these have none.
  public static let openTelemetry = MetricFamilies(rawValue: 1)
  /// The names of gRPC's own libraries: `grpc.client.…` (gRFC A66, A96) and `grpc.subchannel.…` (A94), whatever the
  /// protocol of the calls.
  public static let grpc = MetricFamilies(rawValue: 2)
}

/// What a metric is called and what it counts, for exporters that want to know units, and for tables.
public struct MetricDescription: Sendable, Hashable {
  /// How values become one.
  public enum Kind: String, Sendable, Hashable {
    /// A sum of what is added; a `Counter` of swift-metrics.
    case counter
    /// A sum that goes up and down; a `Meter`.
    case upDownCounter
    /// A distribution; a `Timer` for ``MetricDescription/unit`` `s`, else a `Recorder`.
    case histogram
  }

  /// For example `grpc.client.attempt.duration`.
  public var name: String
  /// How values become one.
  public var kind: Kind
  /// By UCUM, as OpenTelemetry writes units: `s`, `By`, `{attempt}`. A `Timer` of swift-metrics receives nanoseconds in any case.
  public var unit: String
  /// The names of its dimensions. Some may be absent, for example `error.type` on success.
  public var labels: [String]
  /// What is counted.
  public var summary: String

  /// A description of its parts.
  public init(name: String, kind: Kind, unit: String, labels: [String], summary: String) {
    self.name = name
    self.kind = kind
    self.unit = unit
    self.labels = labels
    self.summary = summary
  }
}
