internal import Connect

/// Faults of all servers of a zone. ``SimulatedNetwork/partition(zone:for:)`` cuts a zone off.
extension SimulatedCluster {
  /// The servers of a zone, of all services.
  public func servers(in zone: String) -> [SimulatedServer] { self.allServers.filter { $0.zone == zone } }

  /// All processes of a zone die: connections are reset, and new ones refused.
  ///
  /// - Parameters:
  ///   - zone: The zone's name, as in ``SimulatedServer/zone``.
  ///   - duration: After this time they run again; nil until ``start(zone:)``.
  public func crash(zone: String, for duration: Duration? = nil) {
    for server in self.servers(in: zone) { server.crash() }
    guard let duration else { return }
    self.executor.run { _ = self.executor.schedule(after: duration.clamped) { self.start(zone: zone) } }
  }

  /// All processes of a zone run again, after ``crash(zone:for:)``.
  public func start(zone: String) {
    for server in self.servers(in: zone) { server.start() }
  }

  /// All servers of a zone go away in order (GOAWAY), are gone after `drain`, and back after `downtime` more.
  public func restart(zone: String, drain: Duration = .zero, downtime: Duration = .seconds(1)) {
    for server in self.servers(in: zone) { server.restart(drain: drain, downtime: downtime) }
  }
}
