internal import Connect

/// The clusters of a channel: a channel of its own for each. Confined to the executor of the origin's channel.
///
/// A cluster lives while routes, or calls that they have led there, hold its ``CallCluster``: those of any channel to the origin.
/// Then its channel shuts down in order. A cluster that comes back before that is the same one.
final class ChannelClusters {
  /// What the routes of calls are made of.
  private struct Basis {
    let routing: Routing
    let config: ServiceConfig?
    let throttle: RetryBudget?

    func isSame(as other: Basis) -> Bool {
      self.throttle === other.throttle && self.config == other.config && self.routing == other.routing
    }
  }

  weak var channel: OriginChannel?
  private let environment: ChannelEnvironment
  private(set) var table: ClusterTable
  let known = KnownClusters()
  /// What calls are routed by now; nil if they are not.
  private var basis: Basis?
  /// Whether the time to shut down is over.
  var isForced = false
  private var seeds: SeededRandom
  /// The number with which it listens for clusters that nothing holds any more.
  private var listener: Int?
  /// When a call of a cluster, or of endpoints, that are gone has ended last.
  private var pastUse = Duration.zero
  let numbers: CallNumbers

  init(in environment: ChannelEnvironment) {
    self.environment = environment
    self.table = ClusterTable(self.known)
    self.seeds = SeededRandom(seed: environment.seed ^ 0x636c_7573_7465_7273)
    self.numbers = CallNumbers(seed: self.seeds.next())
    let executor = environment.executor
    let clusters = Confined(Weak(self), to: executor)
    self.listener = environment.shared.clusters.listen { name in
      executor.execute { clusters.value.object?.released(name) }
    }
  }

  deinit { self.stopListening() }

  /// The executor may end then.
  private func stopListening() {
    if let number = self.listener.take() { self.environment.shared.clusters.stopListening(number) }
  }

  // MARK: - Routes

  /// Whether calls go through routes.
  var areRouted: Bool { self.basis != nil }

  /// The clusters are these from now on.
  ///
  /// - Returns: Those that routes lead to and that exist, by name. They live while the caller holds them. Nil if all is as before.
  func apply(_ routing: Routing, _ rules: ChannelRules) -> [String: CallCluster]? {
    let basis = Basis(routing: routing, config: rules.config, throttle: rules.throttle)
    if self.basis?.isSame(as: basis) == true { return nil }
    self.basis = basis
    var handles: [String: CallCluster] = [:]
    for name in routing.reachableClusters.sorted() {
      guard let cluster = routing.clusters[name] else { continue }
      handles[name] = self.environment.shared.clusters.handle(name, of: self.environment.origin)
      self.follow(cluster, name, rules)
    }
    // Those that calls alone hold, if the resolver still knows them.
    for member in self.table.present where handles[member.name] == nil {
      if let cluster = routing.clusters[member.name] { self.follow(cluster, member.name, rules) }
    }
    self.keepClusters()
    return handles
  }

  private func follow(_ cluster: Cluster, _ name: String, _ rules: ChannelRules) {
    let member = self.table[name] ?? self.makeMember(name)
    let settings = ClusterMember.Settings(
      cluster: cluster,
      config: rules.config,
      policy: cluster.balancing ?? rules.policy
    )
    guard member.differs(from: settings) else { return }
    self.noteUse(of: member)
    member.follow(settings)
  }

  /// The resolver goes on to report the clusters that something holds.
  private func keepClusters() {
    self.channel?.resolution.keepClusters(Set(self.table.present.map(\.name)))
  }

  /// The calls that wait until a server can be reached, in clusters which have no endpoints, and which routes do not lead to any
  /// more. Other clusters serve them.
  func takeStranded() -> [WaitingStream] {
    guard let basis = self.basis else { return [] }
    let strandable = self.table.present.filter(\.isStrandable)
    if strandable.isEmpty { return [] }
    let routed = basis.routing.reachableClusters
    var stranded: [WaitingStream] = []
    for member in strandable where !routed.contains(member.name) {
      stranded += member.channel.waiting.takeAll()
      member.channel.waitingDidChange()
    }
    return stranded
  }

  /// There are no routes any more. Calls that routes have led to clusters go on there.
  func leaveRoutes() { self.basis = nil }

  private func makeMember(_ name: String) -> ClusterMember {
    let parent = Confined(Weak(self), to: self.environment.executor)
    let executor = self.environment.executor
    let resolver = PushResolver {
      // The channels of the clusters ask on the executor.
      executor.run { parent.value.object?.channel?.resolution.resolveAgain() }
    }
    var environment = self.environment
    environment.cluster = name
    environment.seed = self.seeds.next()
    environment.configuration.routing = nil
    environment.configuration.resolver = nil
    environment.shared = self.environment.shared.ofCluster(name, resolver, on: executor)
    environment.onStateChange = { parent.value.object?.didChange() }
    let channel = OriginChannel(environment)
    if self.channel?.isClosingWhenIdle == true { channel.closeWhenIdle() }
    let member = ClusterMember(name, resolver, channel)
    self.table[name] = member
    return member
  }

  /// Nothing has held a cluster a moment ago.
  private func released(_ name: String) {
    // It may have come back meanwhile.
    guard let member = self.table[name], !self.environment.shared.clusters.isHeld(name) else { return }
    self.noteUse(of: member)
    self.table.end(member)
    self.keepClusters()
    self.shutDown(member, within: nil)
    self.didChange()
  }

  private func shutDown(_ member: ClusterMember, within limit: Duration?) {
    let parent = Confined((clusters: Weak(self), member: Weak(member)), to: self.environment.executor)
    member.channel.shutDown(within: limit) {
      guard let clusters = parent.value.clusters.object else { return }
      clusters.table.remove(parent.value.member.object)
      clusters.didChange()
    }
  }

  private func didChange() {
    if let channel = self.channel { ChannelRoutes(channel).clustersDidChange() }
  }

  // MARK: - Calls

  /// The channel of a request's cluster; nil if no route of this origin has chosen one.
  func channel(of request: HTTPStreamRequest) -> OriginChannel? {
    request.destination.flatMap { self.table.channel(of: $0, from: self.environment.origin) }
  }

  // MARK: - All of them

  /// When a call has ended last, as far as that is known.
  var lastUse: Duration { max(self.pastUse, self.table.lastUse) }

  /// The endpoints of a cluster change, or it ends.
  private func noteUse(of member: ClusterMember) {
    self.pastUse = max(self.pastUse, member.haveCalls ? self.environment.executor.now : member.lastUse)
  }

  func connect() { for member in self.table.present { member.channel.connect() } }

  func closeWhenIdle() { for member in self.table.all { member.channel.closeWhenIdle() } }

  /// The channel is idle: nothing is known of the clusters.
  func enterIdle() {
    self.basis = nil
    self.known.forget()
    for member in self.table.present { member.enterIdle() }
  }

  /// May be called again, also for clusters that have come meanwhile.
  func shutDown(within limit: Duration?) {
    self.basis = nil
    self.stopListening()
    for member in self.table.present { self.table.end(member) }
    for member in self.table.all { self.shutDown(member, within: limit) }
  }
}
