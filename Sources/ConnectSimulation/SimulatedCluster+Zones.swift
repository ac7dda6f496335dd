internal import Connect

/// Faults of all servers of a zone. ``SimulatedNetwork/partition(zone:for:)`` cuts a zone off.
extension SimulatedCluster {
  /// The servers of a zone, of all services.
  public func servers(in zone: String) -> [SimulatedServer] { self.allServers.filter { $0.zone == zone } }

  /// All processes of a zone die: connections are reset, and new ones refused.
  ///
  /// A later crash of the zone replaces the end of an earlier one. Servers that were already down stay so: see
  /// ``SimulatedServer/crash()``.
  ///
  /// - Parameters:
  ///   - zone: The zone's name, as in ``SimulatedServer/zone``. A name without servers is a violation.
  ///   - duration: After this time they run again; nil until ``start(zone:)``.
  public func crash(zone: String, for duration: Duration? = nil) {
    self.executor.run {
      let servers = self.knownServers(in: zone)
      let earlier = self.zoneOutages[zone]
      let victims = servers.filter { !$0.isDown } + (earlier?.servers ?? []).filter(\.isDown)
      let number = (earlier?.number ?? 0) + 1
      self.zoneOutages[zone] = ZoneOutage(number: number, servers: victims)
      for server in servers { server.crash() }
      guard let duration else { return }
      _ = self.executor.schedule(after: duration.clamped) {
        guard let outage = self.zoneOutages[zone], outage.number == number else { return }
        self.zoneOutages[zone]?.servers = []
        for server in outage.servers { server.start() }
      }
    }
  }

  /// All processes of a zone run again, after ``crash(zone:for:)``.
  ///
  /// - Parameter zone: As for ``crash(zone:for:)``.
  public func start(zone: String) {
    self.executor.run {
      self.zoneOutages[zone]?.servers = []
      self.zoneOutages[zone]?.number += 1
      for server in self.knownServers(in: zone) { server.start() }
    }
  }

  /// All servers of a zone go away in order (GOAWAY), are gone after `drain`, and back after `downtime` more.
  ///
  /// - Parameters:
  ///   - zone: As for ``crash(zone:for:)``.
  ///   - drain: How long requests under way may take.
  ///   - downtime: How long the servers are gone.
  public func restart(zone: String, drain: Duration = .zero, downtime: Duration = .seconds(1)) {
    self.executor.run {
      for server in self.knownServers(in: zone) { server.restart(drain: drain, downtime: downtime) }
    }
  }

  private func knownServers(in zone: String) -> [SimulatedServer] {
    let servers = self.servers(in: zone)
    if servers.isEmpty {
      let zones = Set(self.allServers.map(\.zone)).sorted().joined(separator: ", ")
      self.recorder.mistake("no server is in zone \"\(zone)\": the zones are \(zones)")
    }
    return servers
  }
}

/// The crash of a zone.
struct ZoneOutage {
  /// Counts the crashes of the zone, so that the end of an earlier one does not end a later one.
  var number: Int
  /// The servers that run again at its end.
  var servers: [SimulatedServer]
}
