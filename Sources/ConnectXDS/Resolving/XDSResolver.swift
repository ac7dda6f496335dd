internal import Connect
internal import ConnectChannels

/// Finds the routes of one target through an xDS client. All channels that use the target share its watch.
struct XDSResolver: NameResolver {
  /// What has to live as long as the target is watched: the client.
  let owner: (any AnyObject & Sendable)?
  let targets: XDSTargets
  let target: ListenerName

  var mayBringServiceConfig: Bool { true }

  func watch(
    _ origin: Origin,
    on executor: any CallExecutor,
    _ report: @escaping @Sendable (Result<ResolverUpdate, ConnectError>) -> Void
  ) -> any ResolverWatch {
    let watch = XDSResolverWatch(self.targets, self.target, owner: self.owner)
    watch.start(report)
    return watch
  }
}

/// `@unchecked Sendable`: what changes is touched on the executor of the targets alone.
private final class XDSResolverWatch: ResolverWatch, @unchecked Sendable {
  private let targets: XDSTargets
  private let target: ListenerName
  private let owner: (any AnyObject & Sendable)?
  private var number: Int?
  private var isCancelled = false

  init(_ targets: XDSTargets, _ target: ListenerName, owner: (any AnyObject & Sendable)?) {
    self.owner = owner
    self.targets = targets
    self.target = target
  }

  func start(_ report: @escaping TargetWatch.Report) {
    self.targets.executor.execute {
      guard !self.isCancelled else { return }
      self.number = self.targets.add(self.target, report)
    }
  }

  func resolveAgain() {
    self.targets.executor.execute { self.targets.resolveAgain(self.target) }
  }

  func keepClusters(_ names: Set<String>) {
    self.targets.executor.execute {
      if let number = self.number { self.targets.keepClusters(names, for: number, of: self.target) }
    }
  }

  func cancel() {
    self.targets.executor.execute {
      self.isCancelled = true
      if let number = self.number.take() { self.targets.remove(number, of: self.target) }
    }
  }
}
