internal import Connect
internal import Synchronization

/// The clusters of a channel: a channel of its own for each. Confined to the executor of the origin's channel.
///
/// A cluster lives while routes, or calls that they have led there, hold its ``CallCluster``. Then its channel shuts down in
/// order. A cluster that comes back before that is the same one.
final class ChannelClusters {
  /// What a cluster's channel follows.
  private struct Settings: Equatable {
    var cluster: Cluster
    var config: ServiceConfig?
    var policy: BalancingPolicy
  }

  private final class Member {
    let name: String
    let resolver: PushResolver
    let channel: OriginChannel
    /// What routes and calls hold.
    weak var handle: CallCluster?
    var settings: Settings?

    init(_ name: String, _ resolver: PushResolver, _ channel: OriginChannel) {
      self.name = name
      self.resolver = resolver
      self.channel = channel
    }
  }

  /// Tells of clusters that nothing holds any more, from any thread.
  private final class Releases: Sendable {
    private let executor: any CallExecutor
    private let clusters: Confined<Weak<ChannelClusters>>
    /// False once nobody listens: the executor may have ended then.
    let isOpen = Atomic(true)

    init(_ clusters: ChannelClusters, on executor: any CallExecutor) {
      self.executor = executor
      self.clusters = Confined(Weak(clusters), to: executor)
    }

    func released(_ name: String) {
      guard self.isOpen.load(ordering: .acquiring) else { return }
      let clusters = self.clusters
      self.executor.execute { clusters.value.object?.released(name) }
    }
  }

  weak var channel: OriginChannel?
  private let environment: ChannelEnvironment
  private var members: [String: Member] = [:]
  /// By the cluster that calls hold.
  private var byHandle: [ObjectIdentifier: Member] = [:]
  /// Those that nothing holds any more, which close their connections.
  private var ending: [ObjectIdentifier: Member] = [:]
  /// Whether calls go through routes.
  private(set) var areRouted = false
  /// Whether the time to shut down is over.
  var isForced = false
  private var seeds: SeededRandom
  private var releases: Releases?
  let numbers: CallNumbers

  init(in environment: ChannelEnvironment) {
    self.environment = environment
    self.seeds = SeededRandom(seed: environment.seed ^ 0x636c_7573_7465_7273)
    self.numbers = CallNumbers(seed: self.seeds.next())
  }

  deinit { self.releases?.isOpen.store(false, ordering: .releasing) }

  // MARK: - Routes

  /// The clusters are these from now on.
  ///
  /// - Returns: Those that routes lead to and that exist, by name.
  func apply(_ routing: Routing, _ rules: ChannelRules) -> [String: CallCluster] {
    self.areRouted = true
    var handles: [String: CallCluster] = [:]
    for name in routing.reachableClusters.sorted() {
      guard let cluster = routing.clusters[name] else { continue }
      let member = self.members[name] ?? self.makeMember(name)
      handles[name] = member.handle ?? self.makeHandle(of: member)
      self.update(
        member,
        Settings(cluster: cluster, config: rules.config, policy: cluster.balancing ?? rules.policy)
      )
    }
    return handles
  }

  /// There are no routes any more. Calls that routes have led to clusters go on there.
  func leaveRoutes() { self.areRouted = false }

  private func update(_ member: Member, _ settings: Settings) {
    guard settings != member.settings else { return }
    member.settings = settings
    member.channel.rules.follow(settings.config, settings.policy)
    member.resolver.update(settings.cluster.endpoints)
  }

  private func makeMember(_ name: String) -> Member {
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
    let member = Member(name, resolver, channel)
    self.members[name] = member
    return member
  }

  private func makeHandle(of member: Member) -> CallCluster {
    let releases = self.releases ?? Releases(self, on: self.environment.executor)
    self.releases = releases
    let name = member.name
    let handle = CallCluster(name, of: self.environment.origin) { releases.released(name) }
    self.byHandle = self.byHandle.filter { $0.value !== member }
    self.byHandle[ObjectIdentifier(handle)] = member
    member.handle = handle
    return handle
  }

  /// Nothing has held a cluster a moment ago.
  private func released(_ name: String) {
    // It may have come back meanwhile.
    guard let member = self.members[name], member.handle == nil else { return }
    self.members[name] = nil
    self.byHandle = self.byHandle.filter { $0.value !== member }
    self.ending[ObjectIdentifier(member)] = member
    let parent = Confined((clusters: Weak(self), member: Weak(member)), to: self.environment.executor)
    member.channel.shutDown(within: nil) { parent.value.clusters.object?.ended(parent.value.member.object) }
    self.didChange()
  }

  private func ended(_ member: Member?) {
    if let member { self.ending[ObjectIdentifier(member)] = nil }
    self.didChange()
  }

  private func didChange() {
    if let channel = self.channel { ChannelRoutes(channel).clustersDidChange() }
  }

  // MARK: - Calls

  /// The channel of a request's cluster; nil if no route of this origin has chosen one.
  func channel(of request: HTTPStreamRequest) -> OriginChannel? {
    guard let cluster = request.destination?.cluster else { return nil }
    if let member = self.byHandle[ObjectIdentifier(cluster)], member.handle === cluster {
      return member.channel
    }
    // Another channel of the origin has chosen, for another version of HTTP.
    return cluster.origin == self.environment.origin ? self.members[cluster.name]?.channel : nil
  }

  // MARK: - All of them

  /// Whether nothing is left: neither routes, nor a cluster.
  var areOver: Bool { !self.areRouted && self.isFinished }

  /// Whether no cluster is left, not even one that ends.
  var isFinished: Bool { self.members.isEmpty && self.ending.isEmpty }

  /// Whether the channel may close: no cluster is left, or the time to shut down is over.
  var letShutDown: Bool { self.isForced || self.isFinished }

  private var all: [OriginChannel] {
    self.members.values.map(\.channel) + self.ending.values.map(\.channel)
  }

  var haveCalls: Bool {
    self.all.contains {
      !$0.waiting.isEmpty || $0.endpoints.subchannels.haveCalls || $0.clusters?.haveCalls == true
    }
  }

  var lastUse: Duration {
    self.all.reduce(.zero) { $1.endpoints.subchannels.list.reduce($0) { max($0, $1.pool.lastUse) } }
  }

  /// The states as one, as gRPC's cluster manager has it: what a call may hope for.
  var state: ConnectivityState {
    let states = self.members.values.map(\.channel.connectivity)
    return [.ready, .connecting, .idle].first(where: states.contains) ?? .transientFailure
  }

  var snapshots: [ChannelSnapshot.NamedCluster] {
    self.members.values.sorted { $0.name < $1.name }.map {
      ChannelSnapshot.NamedCluster(name: $0.name, snapshot: ChannelSnapshot($0.channel))
    }
  }

  func connect() { for channel in self.all { channel.connect() } }

  func closeWhenIdle() { for channel in self.all { channel.closeWhenIdle() } }

  /// The channel is idle: nothing is known of the clusters.
  func enterIdle() {
    self.areRouted = false
    for member in self.members.values {
      member.settings = nil
      member.channel.enterIdle()
    }
  }

  func shutDown(within limit: Duration?) {
    self.areRouted = false
    let parent = Confined(Weak(self), to: self.environment.executor)
    self.releases?.isOpen.store(false, ordering: .releasing)
    for (name, member) in self.members {
      self.members[name] = nil
      self.ending[ObjectIdentifier(member)] = member
    }
    self.byHandle = [:]
    for member in self.ending.values {
      let member = Confined(Weak(member), to: self.environment.executor)
      member.value.object?.channel.shutDown(within: limit) {
        parent.value.object?.ended(member.value.object)
      }
    }
  }
}
