internal import Connect
internal import ConnectSimulation
internal import ConnectTesting

extension Scenario {
  /// A fault and its time.
  package struct Trouble: Sendable, CustomStringConvertible {
    enum Kind: Sendable {
      case crash(Int, for: Duration)
      case freeze(Int, for: Duration)
      case refuse(Int, for: Duration)
      case goAway(Int)
      case restart(Int, drain: Duration, downtime: Duration)
      case slow(Int, by: Double, for: Duration)
      case fail(Int, rate: Double, code: Code, for: Duration)
      case partition(String, for: Duration)
      case crashZone(String, for: Duration)
      case restartZone(String, drain: Duration, downtime: Duration)
      case resolve([Int])
      case failResolution
      case pause(Duration)
      case unhealthy(Int, for: Duration)
      case revokeTokens
      case configure(String?)
    }

    let time: Duration
    let kind: Kind
    package var description: String { "\(self.time): \(self.kind)" }
  }
}

extension Scenario.Trouble {
  func schedule(in cluster: SimulatedCluster, _ service: SimulatedService, _ ledger: Ledger) {
    func server(_ index: Int, _ work: @escaping @Sendable (SimulatedServer) -> Void) {
      cluster.at(self.time) { work(service[index]) }
    }
    func server(
      _ index: Int,
      for length: Duration,
      _ begin: @escaping @Sendable (SimulatedServer) -> Void,
      _ end: @escaping @Sendable (SimulatedServer) -> Void
    ) {
      server(index, begin)
      cluster.at(self.time + length) { end(service[index]) }
    }
    switch self.kind {
    case .crash(let index, let length): server(index, for: length, { $0.crash() }, { $0.start() })
    case .freeze(let index, let length): server(index, for: length, { $0.freeze() }, { $0.thaw() })
    case .refuse(let index, let length):
      server(index, for: length, { $0.refuseConnections() }, { $0.refuseConnections(false) })
    case .goAway(let index): server(index) { $0.goAway() }
    case .restart(let index, let drain, let downtime):
      server(index) { $0.restart(drain: drain, downtime: downtime) }
    case .slow(let index, let factor, let length):
      server(index, for: length, { $0.slow(by: factor) }, { $0.slow(by: 1) })
    case .fail(let index, let rate, let code, let length):
      server(index, for: length, { $0.fail(rate, with: code) }, { $0.fail(0) })
    case .partition(let zone, let length):
      cluster.at(self.time) { cluster.network.partition(zone: zone, for: length) }
    case .crashZone(let zone, let length):
      cluster.at(self.time) { cluster.crash(zone: zone, for: length) }
    case .restartZone(let zone, let drain, let downtime):
      cluster.at(self.time) { cluster.restart(zone: zone, drain: drain, downtime: downtime) }
    case .resolve(let servers):
      cluster.at(self.time) {
        // Recorded first, since clients may learn of it at once.
        cluster.at(cluster.clock.now.offset + service.nameDelay) { ledger.named(servers) }
        service.resolve(to: servers.map { service[$0] })
      }
    case .failResolution: cluster.at(self.time) { service.failResolution() }
    case .pause(let length): cluster.at(self.time) { cluster.pause(for: length) }
    case .unhealthy(let index, let length):
      cluster.at(self.time) {
        ledger.health(of: index, isGood: false)
        service[index].health = .notServing
      }
      cluster.at(self.time + length) {
        ledger.health(of: index, isGood: true)
        service[index].health = .serving
      }
    case .revokeTokens: cluster.at(self.time) { ledger.validToken += 1 }
    case .configure(let config): cluster.at(self.time) { service.serviceConfig = config }
    }
  }
}
