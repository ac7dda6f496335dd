internal import Connect
internal import ConnectChannels

/// Watches all resources of one target, and reports its configuration when that changes.
///
/// `@unchecked Sendable`: touched on `executor` alone.
final class DependencyWatch: @unchecked Sendable {
  typealias Answer = Result<XDSConfiguration, XDSConfiguration.Absence>

  /// What a watch needs from outside.
  struct Environment {
    let executor: any CallExecutor
    let source: any ResourceSource
    /// Finds the addresses of logical DNS clusters.
    let resolver: any NameResolver
    /// Where a cluster comes from.
    var server: (_ cluster: String) -> XDSBootstrap.Server? = { _ in nil }
  }

  private enum Watch {
    case resource(any ResourceWatch)
    case addresses(any ResolverWatch)

    func cancel() {
      switch self {
      case .resource(let watch): watch.cancel()
      case .addresses(let watch): watch.cancel()
      }
    }
  }

  private let environment: Environment
  private var graph: DependencyGraph
  /// With the order in which they began.
  private var watches: [Dependency: (number: Int, watch: Watch)] = [:]
  private var watchCount = 0
  private var last: XDSConfiguration?
  private var lastFailure: (text: String, clusters: [String: XDSConfiguration.Cluster])?
  private var isEvaluating = false
  private var report: ((Answer) -> Void)?

  /// - Parameter report: Called on the executor. A failure says that calls cannot be routed.
  init(_ graph: DependencyGraph, in environment: Environment, _ report: @escaping (Answer) -> Void) {
    self.graph = graph
    self.environment = environment
    self.report = report
  }

  func start() { self.evaluate() }

  func cancel() {
    self.report = nil
    for (_, watch) in Self.sorted(self.watches) { watch.cancel() }
    self.watches = [:]
  }

  private static func sorted(_ watches: [Dependency: (number: Int, watch: Watch)]) -> [(Dependency, Watch)] {
    watches.sorted { $0.value.number < $1.value.number }.map { ($0.key, $0.value.watch) }
  }

  /// Connections have failed: names may have other addresses.
  func resolveAgain() {
    for case (_, .addresses(let watch)) in Self.sorted(self.watches) { watch.resolveAgain() }
  }

  /// Channels hold these clusters.
  func keepClusters(_ names: Set<String>) {
    guard self.report != nil, names != self.graph.kept else { return }
    self.graph.kept = names
    self.evaluateSoon()
  }

  private func evaluate() {
    guard self.report != nil else { return }
    let evaluation = self.graph.evaluate()
    var old = self.watches
    for dependency in evaluation.wanted {
      if old.removeValue(forKey: dependency) != nil { continue }
      self.watchCount += 1
      self.watches[dependency] = (self.watchCount, self.watch(dependency))
    }
    for (dependency, watch) in Self.sorted(old) {
      self.watches[dependency] = nil
      watch.cancel()
    }
    switch evaluation.result {
    case nil: break
    case .success(var configuration):
      configuration.clusters.setReportServers(self.environment.server)
      if configuration == self.last { return }
      self.last = configuration
      self.lastFailure = nil
      self.report?(.success(configuration))
    case .failure(var absence):
      absence.clusters.setReportServers(self.environment.server)
      let text = "\(absence.error)"
      if let lastFailure, lastFailure == (text, absence.clusters) { return }
      self.last = nil
      self.lastFailure = (text, absence.clusters)
      self.report?(.failure(absence))
    }
  }

  /// Evaluates soon: the resources of one response come one by one, and count together.
  private func evaluateSoon() {
    guard !self.isEvaluating else { return }
    self.isEvaluating = true
    self.environment.executor.execute { [weak self] in
      self?.isEvaluating = false
      self?.evaluate()
    }
  }

  private func learn(_ knowledge: DependencyGraph.Knowledge, of dependency: Dependency) {
    guard self.report != nil else { return }
    if self.graph.set(knowledge, of: dependency) { self.evaluateSoon() }
  }

  private func cannotFind(_ dependency: Dependency, _ error: ConnectError) {
    // The control plane cannot be reached, and has not said that the resource does not exist. The last configuration stays in
    // use until it can.
    if error.code == .unavailable, self.last != nil { return }
    self.learn(.missing(error), of: dependency)
  }

  private func watch(_ dependency: Dependency) -> Watch {
    switch dependency {
    case .resource(let type, let name):
      return .resource(
        self.environment.source.watch(type, name) { [weak self] state in
          switch state {
          case .present(let resource): self?.learn(.present(resource), of: dependency)
          case .missing(let error): self?.cannotFind(dependency, error)
          }
        }
      )
    case .addresses(let host, let port):
      return .addresses(self.watchAddresses(host, port, for: dependency))
    }
  }

  private func watchAddresses(_ host: String, _ port: Int, for dependency: Dependency) -> any ResolverWatch {
    let executor = self.environment.executor
    let origin = Origin(scheme: .http, host: host, port: port)
    return self.environment.resolver.watch(origin, on: executor) { [weak self] answer in
      // A resolver may report within `watch`, and from any thread.
      executor.execute { [weak self] in self?.found(answer, host, for: dependency) }
    }
  }

  private func found(
    _ answer: Result<ResolverUpdate, ConnectError>,
    _ host: String,
    for dependency: Dependency
  ) {
    switch answer {
    case .success(let update):
      let locality = EndpointsResource.Locality(name: XDSLocality(), weight: 1, endpoints: update.endpoints)
      self.learn(.present(.endpoints(EndpointsResource(priorities: [[locality]]))), of: dependency)
    case .failure(let error):
      // The last good addresses stay in use.
      if self.graph.isPresent(dependency) { return }
      let reason = error.message ?? "\(error.code)"
      let text = "the name \"\(host)\" of a cluster has no addresses: \(reason)"
      self.learn(.missing(ConnectError(code: .unavailable, message: text)), of: dependency)
    }
  }
}
