internal import Connect

/// The clusters of a channel: those that something holds, and those that end. Lists have the same order in each run, so that
/// simulations can be repeated.
struct ClusterTable {
  private var members: [String: ClusterMember] = [:] {
    didSet { self.known.forget() }
  }
  private let known: KnownClusters
  /// Those that nothing holds any more, which close their connections; in the order in which that began.
  private var ending: [ClusterMember] = []

  init(_ known: KnownClusters) {
    self.known = known
  }

  /// Those that something holds, by name.
  subscript(name: String) -> ClusterMember? {
    get { self.members[name] }
    set { self.members[name] = newValue }
  }

  /// The channel of a call's cluster; nil if no route of the origin has chosen one.
  func channel(of destination: CallDestination, from origin: Origin) -> OriginChannel? {
    guard let cluster = destination.cluster, cluster.origin == origin,
      let member = self.members[cluster.name]
    else { return nil }
    self.known.remember(member, as: cluster.number)
    return member.channel
  }

  /// Nothing holds the cluster any more.
  mutating func end(_ member: ClusterMember) {
    self.members[member.name] = nil
    self.ending.append(member)
  }

  /// A cluster that ends has nothing left.
  mutating func remove(_ member: ClusterMember?) {
    self.ending.removeAll { $0 === member }
  }

  /// Whether no cluster is left, not even one that ends.
  var isEmpty: Bool { self.members.isEmpty && self.ending.isEmpty }

  /// Those that something holds.
  var present: [ClusterMember] { self.members.values.sorted { $0.name < $1.name } }

  var all: [ClusterMember] { self.present + self.ending }

  var haveCalls: Bool {
    self.members.values.contains(where: \.haveCalls) || self.ending.contains(where: \.haveCalls)
  }

  /// When a call of those that something holds has ended last.
  var lastUse: Duration { self.members.values.reduce(.zero) { max($0, $1.lastUse) } }

  /// The states as one, as gRPC's cluster manager has it: what a call may hope for.
  var state: ConnectivityState {
    let states = self.members.values.map(\.channel.connectivity)
    return [.ready, .connecting, .idle].first(where: states.contains) ?? .transientFailure
  }

  var snapshots: [ChannelSnapshot.NamedCluster] {
    self.present.map { ChannelSnapshot.NamedCluster(name: $0.name, snapshot: ChannelSnapshot($0.channel)) }
  }
}
