internal import Connect
internal import ConnectChannels

/// The reports of loads to all servers of a client.
///
/// `@unchecked Sendable`: what changes is touched on `executor` alone.
final class LoadReporters: @unchecked Sendable {
  /// Begins a stream to a server; events are those of ``LoadReporter/Event``.
  typealias Open =
    @Sendable (
      _ server: XDSBootstrap.Server,
      _ handle: @escaping @Sendable (LoadReporter.Event) -> Void
    ) -> any LoadReportStream

  private let executor: any CallExecutor
  private let node: Envoy_Config_Core_V3_Node
  private let open: Open
  private var random: SeededRandom
  private var reporters: [XDSBootstrap.Server: (table: StatisticsTable, reporter: LoadReporter)] = [:]

  init(
    _ node: Envoy_Config_Core_V3_Node,
    on executor: any CallExecutor,
    random: SeededRandom,
    open: @escaping Open
  ) {
    var node = node
    node.clientFeatures.append("envoy.lrs.supports_send_all_clusters")
    self.node = node
    self.executor = executor
    self.random = random
    self.open = open
  }

  /// The counts of the clusters that come from a server.
  func table(of server: XDSBootstrap.Server) -> StatisticsTable {
    if let known = self.reporters[server] { return known.table }
    let table = StatisticsTable()
    let seed = self.random.next()
    let open = self.open
    let reporter = LoadReporter(table, self.node, on: self.executor, random: SeededRandom(seed: seed)) {
      handle in
      open(server, handle)
    }
    self.reporters[server] = (table, reporter)
    return table
  }

  func shutDown() {
    for (_, reporter) in self.reporters.values { reporter.shutDown() }
  }
}
