internal import Connect
internal import ConnectChannels

/// All targets that are watched through one client.
///
/// `@unchecked Sendable`: what changes is touched on `executor` alone.
final class XDSTargets: @unchecked Sendable {
  let executor: any CallExecutor
  let security = SecurityTable()
  private let environment: DependencyWatch.Environment
  private let table: (_ cluster: String) -> StatisticsTable
  private var watches: [ListenerName: TargetWatch] = [:]
  private var lastNumber = 0
  private var isShutDown = false

  init(_ environment: DependencyWatch.Environment, table: @escaping (_ cluster: String) -> StatisticsTable) {
    self.executor = environment.executor
    self.environment = environment
    self.table = table
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
    let watch = TargetWatch(target, in: self.environment, security: self.security, table: self.table)
    self.watches[target] = watch
    watch.add(self.lastNumber, report)
    watch.start()
    return self.lastNumber
  }

  func remove(_ number: Int, of target: ListenerName) {
    if self.watches[target]?.remove(number) == true { self.watches[target] = nil }
  }

  func resolveAgain(_ target: ListenerName) { self.watches[target]?.resolveAgain() }

  /// Channels keep the last routes.
  func shutDown() {
    self.isShutDown = true
    for watch in self.watches.values { watch.end() }
    self.watches = [:]
  }

  private static let isOver = ConnectError(
    code: .unavailable,
    message: "the xDS client was shut down; use another XDSClient"
  )
}
