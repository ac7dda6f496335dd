internal import Connect
internal import Logging

/// The endpoints of a channel, and the balancer that chooses among them. Confined to the channel's executor.
final class ChannelEndpoints {
  weak var channel: OriginChannel?
  let environment: ChannelEnvironment
  private let shared: SharedEnvironment
  private(set) var policy: BalancingPolicy
  /// Nil while no endpoint is known.
  private var balancer: (any LoadBalancer)?
  // Each call reads these with `@exclusivity(unchecked)`, so that nothing is checked at run time. That is safe: policies and
  // connections do not come back here while they change.
  @exclusivity(unchecked) var random: SeededRandom
  private let loads = EndpointLoads()
  @exclusivity(unchecked) private(set) var subchannels = SubchannelTable()
  /// Whether new calls are refused, since the channel is shut down. Those that wait may start.
  @exclusivity(unchecked) var areClosed = false {
    didSet { self.single = nil }
  }
  private var isUpdatePending = false
  private var updateTimer: (any CallTimer)?
  private var hasWarnedOfHealth = false
  /// Whether a connection was asked for without a call.
  var wantsConnection = false
  /// Nil while no endpoint is known.
  @exclusivity(unchecked) private var picker: CurrentPicker?
  /// The parts of the policy, as of the last update.
  private(set) var parts: [BalancerPart] = []
  /// The endpoint of all calls, if the picker says so.
  @exclusivity(unchecked) private(set) var single: SingleEndpoint?
  /// The parts of the endpoints that outlier detection judges.
  private(set) var outliers: [ChannelOutliers] = []

  init(in environment: ChannelEnvironment) {
    self.environment = environment
    self.shared = SharedEnvironment(environment)
    self.random = SeededRandom(seed: environment.seed)
    self.policy = environment.configuration.balancing ?? .pickFirst
  }

  var areKnown: Bool { self.balancer != nil }

  // MARK: - Picks

  enum Choice {
    case start(SubchannelTable.Slot, PickAdditions?)
    case wait
    /// Calls that wait until the channel is ready go on waiting.
    case fail(ConnectError)
    /// All calls fail.
    case drop(ConnectError)
  }

  /// Starts a new call.
  ///
  /// - Parameter wait: Takes the call if it cannot be started now, with what was chosen for it, and its random number.
  func start(
    _ request: HTTPStreamRequest,
    _ handler: any HTTPStreamHandler,
    or wait: (Choice, UInt64) -> any HTTPStream
  ) -> any HTTPStream {
    let seed = self.random.next()
    let choice =
      self.areClosed ? .fail(.clientShutDown) : self.pick(request, seed: seed, isNew: true)
    if case .start(let slot, let additions) = choice,
      let stream = slot.subchannel.start(request, handler, additions)
    {
      return stream
    }
    return wait(choice, seed)
  }

  /// Chooses an endpoint for a call.
  ///
  /// - Parameter isNew: Whether the call has lost no connection yet. Otherwise it waits for the backoff, too.
  func pick(_ request: HTTPStreamRequest, seed: UInt64, isNew: Bool) -> Choice {
    guard let picker = self.picker else {
      return self.channel?.resolution.error.map { .fail($0) } ?? .wait
    }
    let context = PickContext(
      path: request.target,
      headers: RequestHeaders(headers: request.headers),
      seed: seed,
      hash: request.destination?.hash
        ?? (request.context.hasValues ? request.context[RoutingHash.self] : nil)
    )
    switch picker.picker.pick(context) {
    case .endpoint(let id, let other, let additions):
      if let other { self.subchannels[other]?.race.connect(isForCall: isNew) }
      // A picker may be older than the last change.
      guard let slot = self.subchannels.slot(of: id), slot.subchannel.takesCalls else { return .wait }
      return .start(slot, additions)
    case .wait:
      return .wait
    case .connect(let id):
      self.subchannels[id]?.race.connect(isForCall: isNew)
      return .wait
    case .fail(let reason):
      return .fail(self.error(reason))
    case .drop(let category, let part):
      // Of an aggregate cluster, the part that drops the call is named, as gRPC does.
      let cluster = part ?? self.environment.cluster
      self.environment.report(.dropped(category: category, cluster: cluster))
      return .drop(.dropped(category, by: self.policy, at: self.environment.origin.place(of: cluster)))
    }
  }

  private func error(_ reason: String) -> ConnectError {
    let causes = self.subchannels.list.map(\.race.error)
    let reason = (causes.isEmpty ? self.channel?.rules.problemOfCluster : nil) ?? reason
    if causes.count == 1, var error = causes[0] {
      let place = self.environment.place
      if self.environment.cluster != nil, let message = error.message, !message.contains(place) {
        error.message = "\(place): \(message)"
      }
      return error
    }
    var error = ConnectError(
      code: .unavailable,
      message: "cannot reach \(self.environment.place): \(reason)"
    )
    if causes.contains(where: { $0?.isVersionMismatch == true }) { error.unnamed = .version }
    error.isFinal = !causes.isEmpty && causes.allSatisfy { $0?.isFinal == true }
    return error
  }

  // MARK: - Balancing

  /// A connection is wanted without a call.
  func connect() {
    self.wantsConnection = true
    self.needsUpdate()
  }

  /// The balancer should know of a change. One update covers all changes until the executor runs it.
  func needsUpdate() {
    guard !self.isUpdatePending else { return }
    self.isUpdatePending = true
    self.environment.executor.execute(with: self) { $0.update() }
  }

  private func update() {
    self.isUpdatePending = false
    guard var balancer = self.balancer, let channel = self.channel else { return }
    var context = BalancerContext(
      now: self.environment.executor.now,
      random: self.random,
      loads: self.loads,
      wantsConnection: self.wantsConnection,
      zone: self.environment.configuration.zone
    )
    let decision = balancer.update(self.subchannels.list.map { $0.balanced }, in: &context)
    self.balancer = balancer
    self.random = context.random
    self.wantsConnection = false
    self.picker = CurrentPicker(decision.picker)
    self.parts = decision.parts
    // While there are clusters, each call is asked where it goes.
    self.single =
      channel.clusters == nil && !self.areClosed
      ? SingleEndpoint(of: decision.picker, in: self.subchannels) : nil
    channel.publish(decision.state)
    self.updateTimer?.cancel()
    self.updateTimer = decision.updateAfter.map { delay in
      self.environment.executor.schedule(after: delay, with: self) { $0.update() }
    }
    if self.subchannels.resting != decision.rest {
      self.subchannels.resting = decision.rest
      let resting = Set(decision.rest)
      for subchannel in self.subchannels.list { subchannel.race.setUnneeded(resting.contains(subchannel.id)) }
    }
    if !channel.isClosingWhenIdle || !channel.waiting.isEmpty {
      for subchannel in self.subchannels.needed(decision.connect) {
        subchannel.race.connect(isForCall: channel.waiting.hasNew)
      }
      for subchannel in self.subchannels.needed(decision.probe) { subchannel.race.probe() }
    }
    channel.waiting.hasNew = false
    if (decision.picker as? ConstantPicker)?.result != .wait { channel.placeWaiting() }
  }

  // MARK: - Endpoints

  /// The resolver has found these endpoints.
  func apply(_ endpoints: [Endpoint], of channel: OriginChannel) {
    if self.balancer == nil || channel.rules.policy != self.policy {
      self.policy = channel.rules.policy
      // From the same seed for all channels to the origin.
      var random = SeededRandom(seed: self.environment.shared.seed)
      self.balancer = self.policy.makeBalancer(random: &random, after: self.balancer)
    }
    guard var balancer = self.balancer else { return }
    let unique = endpoints.withoutDuplicates()
    let endpoints = balancer.select(unique, random: &self.random)
    self.balancer = balancer
    let isSame = endpoints.elementsEqual(unique) { $0.isIdentical(to: $1) }
    self.replaceSubchannels(isSame ? unique : endpoints.withoutDuplicates(), of: channel)
    self.configureSubchannels(channel.rules)
    let old = self.outliers
    self.outliers = ChannelOutliers.parts(of: self)
    for part in old where !self.outliers.contains(where: { $0 === part }) { part.leave() }
    if endpoints.isEmpty { channel.resolution.resolveAgain() }
    self.update()
  }

  private func replaceSubchannels(_ endpoints: [Endpoint], of channel: OriginChannel) {
    let before = self.subchannels.list
    // Mostly few endpoints are others: those that stay at their place are found without hashing.
    let stays = before.indices.map { index in
      index < endpoints.count && before[index].endpoint.serverKey == endpoints[index].serverKey
        && before[index].endpoint.sharesConnections(with: endpoints[index])
    }
    var old: [Endpoint.ServerKey: Subchannel] = [:]
    for index in before.indices where !stays[index] { old[before[index].endpoint.serverKey] = before[index] }
    self.subchannels.list = endpoints.indices.map { index in
      let endpoint = endpoints[index]
      let isEager = self.policy.keepsConnected(endpoint)
      if index < stays.count, stays[index] {
        before[index].update(endpoint, keepsConnection: isEager)
        return before[index]
      }
      // Connections were verified for the name that the endpoint had.
      if !old.isEmpty, let known = old[endpoint.serverKey], known.endpoint.sharesConnections(with: endpoint) {
        old[endpoint.serverKey] = nil
        known.update(endpoint, keepsConnection: isEager)
        return known
      }
      let seed = self.random.next()
      return self.subchannels.add {
        Subchannel(
          $0,
          endpoint,
          in: self.shared,
          of: channel,
          loads: self.loads,
          keepsConnection: isEager,
          seed: seed
        )
      }
    }
    guard !old.isEmpty else { return }
    // In list order, so that the calls that wait for these subchannels keep their order.
    for index in before.indices where !stays[index] && old[before[index].endpoint.serverKey] === before[index]
    {
      self.subchannels.retire(before[index])
      before[index].retire()
    }
  }

  private func configureSubchannels(_ rules: ChannelRules) {
    let service = rules.healthCheckedService
    let connections = rules.maximumHTTP2Connections
    let (countsCalls, usesHealth) = (self.policy.countsCalls, self.policy.usesHealth)
    for subchannel in self.subchannels.list {
      subchannel.pool.update { $0.allow(http2Connections: connections) }
      subchannel.counting.isOn = countsCalls
      subchannel.watches.watchHealth(of: usesHealth ? service : nil)
      subchannel.watches.watchLoad(every: self.policy.outOfBandPeriod(of: subchannel.endpoint))
    }
    if service != nil, !usesHealth, !self.hasWarnedOfHealth {
      self.hasWarnedOfHealth = true
      self.environment.logger.warning(
        "health is not checked: pick_first has one endpoint; choose another policy, such as roundRobin",
        metadata: ["origin": "\(self.environment.origin)"]
      )
    }
  }

  /// No endpoint is known any more.
  func removeAll() {
    for part in self.outliers { part.leave() }
    self.outliers = []
    self.picker = nil
    self.parts = []
    self.single = nil
    self.updateTimer.take()?.cancel()
    self.balancer = nil
    let list = self.subchannels.list
    self.subchannels.list = []
    for subchannel in list {
      self.subchannels.retire(subchannel)
      subchannel.retire()
    }
  }

  /// A subchannel that was retired has no connection left.
  func finished(_ subchannel: Subchannel) {
    self.subchannels.remove(subchannel)
    self.channel?.finishIfNothingIsLeft()
  }
}

/// What pickers see of a request's headers.
private struct RequestHeaders: PickHeaders {
  let headers: Headers

  func value(of name: String) -> String? {
    let values = self.headers[name]
    return values.isEmpty ? nil : values.joined(separator: ",")
  }
}

extension HTTPStreamRequest {
  /// The target without the query that a GET has.
  var path: String { ASCII.withoutQuery(self.target) }
}

extension ConnectError {
  /// The policy keeps a call away from the servers. That says nothing of their health.
  /// Another attempt would add to the load.
  fileprivate static func dropped(
    _ category: String,
    by policy: BalancingPolicy,
    at place: String
  ) -> ConnectError {
    let reason =
      category == CallLimits.circuitBreaking
      ? "as many calls to \(place) are in flight as its circuit breaker allows"
      : "the balancing policy \(policy.name) for \(place) drops calls of the category '\(category)'"
    var error = ConnectError(
      code: .unavailable,
      message: "the call was dropped and not sent: \(reason); try again later, and with fewer calls"
    )
    error.isFinal = true
    error.isUnsent = true
    return error
  }
}
