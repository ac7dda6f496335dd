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
  /// In the order in which they were made; there are few.
  private var reporters: [(server: XDSBootstrap.Server, table: StatisticsTable, reporter: LoadReporter)] = []

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
    if let known = self.reporters.first(where: { $0.server == server }) { return known.table }
    let table = StatisticsTable()
    let seed = self.random.next()
    let open = self.open
    let reporter = LoadReporter(table, self.node, on: self.executor, random: SeededRandom(seed: seed)) {
      handle in
      open(server, handle)
    }
    self.reporters.append((server, table, reporter))
    return table
  }

  func shutDown() {
    for (_, _, reporter) in self.reporters { reporter.shutDown() }
  }
}
