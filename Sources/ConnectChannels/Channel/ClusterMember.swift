internal import Connect

/// A cluster of a channel, with the channel that leads to it. Confined to the executor.
final class ClusterMember {
  /// What a cluster's channel follows.
  struct Settings: Equatable {
    var cluster: Cluster
    var config: ServiceConfig?
    var policy: BalancingPolicy
  }

  let name: String
  let channel: OriginChannel
  /// Those of the channel. Calls look here first: a channel is referenced weakly, so that it takes more steps to hold.
  let endpoints: ChannelEndpoints
  private let resolver: PushResolver
  private var settings: Settings?

  init(_ name: String, _ resolver: PushResolver, _ channel: OriginChannel) {
    self.name = name
    self.resolver = resolver
    self.channel = channel
    self.endpoints = channel.endpoints
  }

  var haveCalls: Bool { !self.channel.waiting.isEmpty || self.endpoints.subchannels.haveCalls }

  /// Whether calls wait for endpoints, of which there are none.
  var isStrandable: Bool {
    !self.channel.waiting.isEmpty && self.endpoints.subchannels.list.isEmpty
  }

  /// When a call of the present endpoints has ended last.
  var lastUse: Duration {
    self.endpoints.subchannels.list.reduce(.zero) { max($0, $1.pool.lastUse) }
  }

  /// Whether something is new in `settings`.
  func differs(from settings: Settings) -> Bool { self.settings != settings }

  func follow(_ settings: Settings) {
    self.settings = settings
    self.channel.rules.follow(settings)
    self.resolver.update(settings.cluster.endpoints)
  }

  func enterIdle() {
    self.settings = nil
    self.channel.enterIdle()
  }
}
