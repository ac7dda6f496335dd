internal import Connect
internal import ConnectChannels

/// All targets that are watched through one client.
///
/// `@unchecked Sendable`: what changes is touched on `executor` alone.
final class XDSTargets: ClientCompanion, @unchecked Sendable {
  let executor: any CallExecutor
  let security = SecurityTable()
  private let environment: DependencyWatch.Environment
  private let reporters: LoadReporters
  private let server: (_ cluster: String) -> XDSBootstrap.Server?
  /// The counts of clusters of which nobody knows where they come from.
  private let table = StatisticsTable()
  private var watches: [ListenerName: TargetWatch] = [:]
  private var lastNumber = 0
  private var isShutDown = false

  /// - Parameter server: Where a cluster comes from.
  init(
    _ environment: DependencyWatch.Environment,
    reporters: LoadReporters,
    server: @escaping (_ cluster: String) -> XDSBootstrap.Server?
  ) {
    self.executor = environment.executor
    self.environment = environment
    self.reporters = reporters
    self.server = server
  }

  /// - Returns: The number of the watch, for ``remove(_:_:)``.
  func add(_ target: ListenerName, _ report: @escaping TargetWatch.Report) -> Int {
    self.lastNumber += 1
    guard !self.isShutDown else {
      report(.failure(Self.isOver))
      return self.lastNumber
    }
    if let watch = self.watches[target] {
      watch.add(self.lastNumber, report)
      return self.lastNumber
    }
    let watch = TargetWatch(target, in: self.environment, security: self.security) { [weak self] cluster in
      self?.table(of: cluster) ?? StatisticsTable()
    }
    self.watches[target] = watch
    watch.add(self.lastNumber, report)
    watch.start()
    return self.lastNumber
  }

  func remove(_ number: Int, of target: ListenerName) {
    if self.watches[target]?.remove(number) == true { self.watches[target] = nil }
  }

  /// Clusters without a server are not reported.
  func table(of cluster: String) -> StatisticsTable {
    self.server(cluster).map(self.reporters.table(of:)) ?? self.table
  }

  func resolveAgain(_ target: ListenerName) { self.watches[target]?.resolveAgain() }

  /// Channels keep the last routes.
  func shutDown() {
    self.isShutDown = true
    for watch in self.watches.values { watch.end() }
    self.watches = [:]
    self.reporters.shutDown()
  }

  private static let isOver = ConnectError(
    code: .unavailable,
    message: "the xDS client was shut down; use another XDSClient"
  )
}
