/// This library's own metrics of channels. OpenTelemetry's conventions have none.
enum ChannelMetric: String, CaseIterable {
  case picks
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
      case .queueDuration: ("s", "How long calls waited for an endpoint, if they had to wait.")
      case .opened: ("{connection}", "Connections that took calls.")
      case .failed: ("{attempt}", "Attempts to connect that failed.")
      case .closed: ("{connection}", "Connections that took calls and are gone.")
      case .ejections: ("{ejection}", "Ejections by outlier detection.")
      case .resolverUpdates: ("{update}", "Answers of the resolver.")
      case .resolverFailures: ("{failure}", "Failures of the resolver.")
      }
    let isOfEndpoint = self != .resolverUpdates && self != .resolverFailures
    return MetricDescription(
      name: self.name,
      kind: self == .queueDuration ? .histogram : .counter,
      unit: unit,
      labels: [SemanticConventions.serverAddress] + (isOfEndpoint ? [SemanticConventions.peerAddress] : []),
      summary: summary
    )
  }
}
