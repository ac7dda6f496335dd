/// This library's own metrics of channels. OpenTelemetry's conventions have none.
enum ChannelMetric: String, CaseIterable {
  case picks
  case otherZone = "picks.other_zone"
  case drops
  case queueDuration = "queue.duration"
  case opened = "connections.opened"
  case failed = "connections.failed"
  case closed = "connections.closed"
  case ejections
  case resolverUpdates = "resolver.updates"
  case resolverFailures = "resolver.failures"

  var name: String { "rpc.client.channel.\(self.rawValue)" }

  var description: MetricDescription {
    let (unit, summary) =
      switch self {
      case .picks: ("{pick}", "Calls and further attempts that were given an endpoint.")
      case .otherZone: ("{pick}", "Picks that left the zone of the client.")
      case .drops: ("{call}", "Calls that the balancing policy failed on purpose.")
      case .queueDuration: ("s", "How long calls waited for an endpoint, if they had to wait.")
      case .opened: ("{connection}", "Connections that took calls.")
      case .failed: ("{attempt}", "Attempts to connect that failed.")
      case .closed: ("{connection}", "Connections that took calls and are gone.")
      case .ejections: ("{ejection}", "Ejections by outlier detection.")
      case .resolverUpdates: ("{update}", "Answers of the resolver.")
      case .resolverFailures: ("{failure}", "Failures of the resolver.")
      }
    return MetricDescription(
      name: self.name,
      kind: self == .queueDuration ? .histogram : .counter,
      unit: unit,
      labels: [SemanticConventions.serverAddress] + self.labels,
      summary: summary
    )
  }

  /// The labels besides the server, as far as they are wanted.
  private var labels: [String] {
    var labels: [String] = []
    switch self {
    case .picks, .otherZone, .queueDuration, .opened, .failed, .closed, .ejections:
      labels.append(SemanticConventions.peerAddress)
    case .drops, .resolverUpdates, .resolverFailures:
      break
    }
    if self.hasCluster { labels.append(GRPCLabels.backendService) }
    if self.hasZone { labels.append(GRPCLabels.locality) }
    if self == .drops { labels.append(GRPCLabels.dropCategory) }
    return labels
  }

  /// Whether the metric names the cluster.
  var hasCluster: Bool { self == .drops || self.hasZone }

  /// Whether the metric names the endpoint's zone.
  var hasZone: Bool {
    switch self {
    case .picks, .otherZone, .queueDuration: true
    case .drops, .opened, .failed, .closed, .ejections, .resolverUpdates, .resolverFailures: false
    }
  }
}
