internal import Metrics

/// gRPC's metrics of the connections to one target.
final class GRPCConnectionInstruments: Sendable {
  private let opened: [Counter]
  private let failed: [Counter]
  private let closed: [Counter]
  private let open: Meter

  init(_ factory: any MetricsFactory, target: String) {
    let dimensions = [(GRPCLabels.target, target)]
    func counters(_ metrics: GRPCConnectionMetric...) -> [Counter] {
      metrics.map { Counter(label: $0.description.name, dimensions: dimensions, factory: factory) }
    }
    self.opened = counters(.succeeded, .pickFirstSucceeded)
    self.failed = counters(.failed, .pickFirstFailed)
    self.closed = counters(.disconnections, .pickFirstDisconnections)
    self.open = Meter(
      label: GRPCConnectionMetric.open.description.name,
      dimensions: dimensions,
      factory: factory
    )
  }

  func didOpen() {
    for counter in self.opened { counter.increment() }
    self.open.increment()
  }

  func didFail() {
    for counter in self.failed { counter.increment() }
  }

  func didClose() {
    for counter in self.closed { counter.increment() }
    self.open.decrement()
  }
}
