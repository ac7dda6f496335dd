internal import Connect
internal import Logging

/// Where a channel's endpoints come from: the watch of its resolver, with a limit on the time to the first answer. Confined to
/// the channel's executor.
final class ChannelResolution {
  weak var channel: OriginChannel?
  private let environment: ChannelEnvironment
  private var watch: (any ResolverWatch)?
  /// Distinguishes answers of this watch from those of earlier watches.
  private var number = 0
  private var startTime = Duration.zero
  private var timer: (any CallTimer)?
  /// The resolver's last good answer.
  private var lastGood: ResolverUpdate?
  private var lastRequest: Duration?
  /// What the watch was told to keep.
  private var keptClusters: Set<String> = []
  private(set) var updateCount = 0
  /// Why nothing is known of the name's endpoints.
  private(set) var error: ConnectError?

  init(in environment: ChannelEnvironment) {
    self.environment = environment
  }

  /// Whether endpoints are looked for, or known.
  var isActive: Bool { self.watch != nil }

  /// How long it has taken up to now.
  var duration: Duration { self.environment.executor.now - self.startTime }

  /// Begins to look for endpoints.
  ///
  /// - Returns: False if that is going on.
  func start() -> Bool {
    guard self.watch == nil else { return false }
    self.error = nil
    self.startTime = self.environment.executor.now
    self.number += 1
    self.keptClusters = []
    let (number, executor) = (self.number, self.environment.executor)
    let here = Confined(Weak(self), to: executor)
    let report: @Sendable (Result<ResolverUpdate, ConnectError>) -> Void = { answer in
      // Later, so that a resolver may answer at once.
      executor.execute { here.value.object?.answered(answer, by: number) }
    }
    if self.environment.hasFixedRoutes {
      self.watch = ClosureWatch()
      report(.success(ResolverUpdate(endpoints: [])))
    } else {
      self.watch = self.environment.shared.resolver.watch(self.environment.origin, on: executor, report)
    }
    // Runs after an immediate answer of the resolver, which needs no timer.
    executor.execute { here.value.object?.limit(number) }
    return true
  }

  func stop() {
    self.watch.take()?.cancel()
    self.number += 1
    self.timer.take()?.cancel()
  }

  /// A connection has failed, or its server goes away: the addresses may be out of date.
  func resolveAgain() {
    let now = self.environment.executor.now
    // A large fleet that fails asks once, however the resolver limits such requests.
    if let last = self.lastRequest, now - last < .seconds(1) { return }
    self.lastRequest = now
    self.watch?.resolveAgain()
  }

  /// These clusters are in use, of all that answers have brought.
  func keepClusters(_ names: Set<String>) {
    guard let watch, names != self.keptClusters else { return }
    self.keptClusters = names
    watch.keepClusters(names)
  }

  private func answered(_ answer: Result<ResolverUpdate, ConnectError>, by number: Int) {
    guard number == self.number, self.watch != nil else { return }
    switch answer {
    case .success(let update):
      self.updateCount += 1
      if self.environment.cluster == nil {
        self.environment.report(.resolved(endpoints: update.endpointCount))
      }
      self.error = nil
      self.apply(update)
    case .failure(let error):
      self.environment.logger.debug(
        "name resolution failed",
        metadata: ["origin": "\(self.environment.origin)", "error": "\(error)"]
      )
      self.environment.report(.resolutionFailed(error))
      self.failed(error)
    }
  }

  private func apply(_ update: ResolverUpdate) {
    self.timer.take()?.cancel()
    guard let channel = self.channel else { return }
    channel.rules.apply(update.serviceConfig)
    switch channel.rules.way(update.routing) {
    case .endpoints:
      self.lastGood = update
      channel.clusters?.leaveRoutes()
      channel.endpoints.apply(update.endpoints, of: channel)
      // Last, since waiting calls go on here.
      channel.rules.publish()
      ChannelRoutes(channel).clustersDidChange()
    case .routes(let routing):
      self.lastGood = update
      self.lastGood?.routing = routing
      let routes = ChannelRoutes(channel)
      if let table = routes.apply(routing) { channel.rules.publish(table) }
      routes.takeWaiting()
      // Calls had waited for the first routes. Nothing follows them.
      if channel.isShutDown { channel.clusters?.shutDown(within: nil) }
    case .asBefore where ChannelRoutes(channel).haveTargets:
      channel.rules.publish()
    case .asBefore(let error):
      if error.code == .failedPrecondition { channel.rules.refuse(error) }
      self.failed(error)
    }
  }

  private func limit(_ number: Int) {
    guard number == self.number, let channel = self.channel, !ChannelRoutes(channel).haveTargets else {
      return
    }
    self.timer = self.environment.executor.schedule(after: self.environment.connectTimeout, with: self) {
      $0.timedOut(number)
    }
  }

  private func timedOut(_ number: Int) {
    guard number == self.number else { return }
    let limit = self.environment.connectTimeout
    self.failed(
      ConnectError(
        code: .unavailable,
        message: "resolving the name of \(self.environment.origin) timed out after \(limit)"
      )
    )
  }

  /// Keeps the last good answer. Without one, calls fail.
  private func failed(_ error: ConnectError) {
    guard let channel = self.channel, !ChannelRoutes(channel).haveTargets else { return }
    if self.lastGood == nil, self.environment.configuration.routing != nil, error.code != .failedPrecondition
    {
      self.apply(ResolverUpdate(endpoints: []))
      return
    }
    if let lastGood = self.lastGood {
      self.apply(lastGood)
      return
    }
    self.error = error
    channel.publish(.transientFailure)
    channel.waiting.forEach { stream in
      if stream.request.waitsForReady { channel.waiting.append(stream) } else { stream.fail(error) }
    }
    channel.serviceRules.updateFailed()
    channel.waitingDidChange()
  }
}

extension ResolverUpdate {
  /// How many endpoints the answer has, also in clusters.
  fileprivate var endpointCount: Int {
    guard let routing = self.routing else { return self.endpoints.count }
    return routing.clusters.values.reduce(0) { $0 + $1.endpoints.count }
  }
}
