internal import Connect
internal import ConnectChannels
internal import Logging

/// What the parts of a client share. Confined to its executor.
final class DiscoveryEnvironment {
  let executor: any CallExecutor
  let transport: any DiscoveryTransport
  let node: Envoy_Config_Core_V3_Node
  /// The time since 1970, for snapshots.
  let wallClock: () -> Duration
  let logger: Logger
  var random: SeededRandom

  init(
    executor: any CallExecutor,
    transport: any DiscoveryTransport,
    node: Envoy_Config_Core_V3_Node,
    wallClock: @escaping () -> Duration,
    logger: Logger,
    random: SeededRandom
  ) {
    self.executor = executor
    self.transport = transport
    self.node = node
    self.wallClock = wallClock
    self.logger = logger
    self.random = random
  }
}
