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
  /// The counts of clusters whose loads are not reported.
  private let table = StatisticsTable()
  /// With the numbers of their first users.
  private var watches: [ListenerName: (number: Int, watch: TargetWatch)] = [:]
  private var lastNumber = 0
  private var isShutDown = false

  init(_ environment: DependencyWatch.Environment, reporters: LoadReporters) {
    self.executor = environment.executor
    self.environment = environment
    self.reporters = reporters
  }

  /// - Returns: The number of the watch, for ``remove(_:_:)``.
  func add(_ target: ListenerName, _ report: @escaping TargetWatch.Report) -> Int {
    self.lastNumber += 1
    guard !self.isShutDown else {
      report(.failure(Self.isOver))
      return self.lastNumber
    }
    if let (_, watch) = self.watches[target] {
      watch.add(self.lastNumber, report)
      return self.lastNumber
    }
    let watch = TargetWatch(target, in: self.environment, security: self.security) { [weak self] server in
      self?.table(of: server) ?? StatisticsTable()
    }
    self.watches[target] = (self.lastNumber, watch)
    watch.add(self.lastNumber, report)
    watch.start()
    return self.lastNumber
  }

  func remove(_ number: Int, of target: ListenerName) {
    if self.watches[target]?.watch.remove(number) == true { self.watches[target] = nil }
  }

  func keepClusters(_ names: Set<String>, for number: Int, of target: ListenerName) {
    self.watches[target]?.watch.keepClusters(names, for: number)
  }

  /// The counts that are reported to a server; nil for those of clusters that are not reported.
  func table(of server: XDSBootstrap.Server?) -> StatisticsTable {
    server.map(self.reporters.table(of:)) ?? self.table
  }

  func resolveAgain(_ target: ListenerName) { self.watches[target]?.watch.resolveAgain() }

  /// Channels keep the last routes.
  func shutDown() {
    self.isShutDown = true
    for (_, watch) in self.watches.values.sorted(by: { $0.number < $1.number }) { watch.end() }
    self.watches = [:]
    self.reporters.shutDown()
  }

  private static let isOver = ConnectError(
    code: .unavailable,
    message: "the xDS client was shut down; use another XDSClient"
  )
}
