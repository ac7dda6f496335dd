import ArgumentParser
import ConnectChannels
import Measuring

/// What it costs to choose an endpoint for a call, among many.
@main
struct PickBench: ParsableCommand {
  @Option(help: "How many endpoints there are.") var endpoints = 10_000
  @Option(help: "How many calls are placed for each policy.") var picks = 2_000_000
  @Option(help: "The nanoseconds that a pick may take. Above that the program fails.") var limit: Int?

  private struct Header: PickHeaders {
    func value(of name: String) -> String? { nil }
  }

  /// The zone is that of the client.
  private static let policies: [(name: String, policy: BalancingPolicy, zone: String?)] = [
    ("limited, round robin", .limited(Self.limits(), of: .roundRobin), nil),
    ("limited, 2 drops", .limited(Self.limits(drops: 2), of: .roundRobin), nil),
    ("tree of xDS", Self.mesh(), nil),
    ("tree of xDS, 2 drops", Self.mesh(drops: 2), nil),
    ("pick first", .pickFirst, nil),
    ("round robin", .roundRobin, nil),
    ("least request of 2", .leastRequest(), nil),
    ("least request of 10", .leastRequest(choices: 10), nil),
    ("weighted round robin", .weightedRoundRobin(.init(source: .resolver)), nil),
    ("ring hash", .ringHash(), nil),
    ("all zones, round robin", .zoneAware(of: .roundRobin), nil),
    ("all zones, least request", .zoneAware(of: .leastRequest()), nil),
    ("own zone, round robin", .zoneAware(of: .roundRobin), "a"),
    ("own zone, least request", .zoneAware(of: .leastRequest()), "a"),
    ("weighted target", .weightedTarget(Self.zones.map { .init($0, weight: 1, .roundRobin) }), nil),
    ("priority", .priority(Self.zones.map { .init($0, .roundRobin) }), nil),
  ]

  /// Endpoints are in these zones, in turn. Calls of a client without a zone go to all of them, those of a client in zone a stay
  /// there. Calls of the priority go to the first.
  private static let zones = ["a", "b", "c"]

  /// - Parameter drops: How many categories are tried for each call.
  private static func limits(drops: Int = 0) -> CallLimits {
    CallLimits(
      drops: (0..<drops).map { CallLimits.Drop(category: "\($0)", perMillion: 10) },
      maximumCalls: 1_024,
      statistics: CallStatistics(cluster: "mesh")
    )
  }

  /// As `ConnectXDS` makes it of a cluster whose endpoints are in three localities.
  private static func mesh(drops: Int = 0) -> BalancingPolicy {
    let localities = Self.zones.map { BalancingPolicy.WeightedChild($0, weight: 1, .roundRobin) }
    let priority = BalancingPolicy.priority([.init(Self.priority, .weightedTarget(localities))])
    return .limited(Self.limits(drops: drops), of: priority)
  }

  private static let priority = "first"

  func run() throws {
    let count = min(max(self.endpoints, 1), 65_000)
    print("\(count) endpoints, \(self.picks) picks of each policy, processor time")
    var slow: [String] = []
    for (name, policy, zone) in Self.policies {
      let picker = self.picker(of: policy, count, zone)
      // The first ones fill the caches.
      _ = self.pick(self.picks / 10, picker)
      let start = Cost.now
      let chosen = self.pick(self.picks, picker)
      let nanoseconds = (Cost.now - start).cpu * 1e3 / Double(self.picks)
      print("  \(name.padding(to: 24)) \(Int(nanoseconds.rounded())) ns  (\(chosen) picks found an endpoint)")
      if let limit = self.limit, nanoseconds > Double(limit) { slow.append(name) }
    }
    guard slow.isEmpty else {
      print("more than \(self.limit ?? 0) ns: \(slow.joined(separator: ", "))")
      throw ExitCode.failure
    }
  }

  private func picker(of policy: BalancingPolicy, _ count: Int, _ zone: String?) -> any Picker {
    var random = SeededRandom(seed: 1)
    var balancer = policy.makeBalancer(random: &random)
    let list = (0..<count).compactMap { index -> BalancedEndpoint? in
      guard var endpoint = Endpoint("10.0.\(index / 250).\(1 + index % 250):80") else { return nil }
      endpoint.weight = UInt32(1 + index % 7)
      let zone = Self.zones[index % Self.zones.count]
      endpoint.zone = zone
      if policy.name == "limited" { endpoint.path = [Self.priority, zone] }
      return BalancedEndpoint(id: EndpointID(slot: index, generation: 1), endpoint: endpoint, state: .ready)
    }
    // Endpoints have different loads, for policies that compare these.
    let calls = Dictionary(uniqueKeysWithValues: list.map { ($0.id, $0.id.slot % 5) })
    let loads = EndpointLoads(calls: calls)
    var context = BalancerContext(now: .zero, random: random, loads: loads, zone: zone)
    return balancer.update(list, in: &context).picker
  }

  /// - Returns: How many calls have got an endpoint.
  private func pick(_ count: Int, _ picker: any Picker) -> Int {
    var random = SeededRandom(seed: 2)
    var chosen = 0
    for _ in 0..<count {
      let seed = random.next()
      let result = picker.pick(
        PickContext(path: "/bench.Service/Call", headers: Header(), seed: seed, hash: seed)
      )
      if case .endpoint = result { chosen += 1 }
    }
    return chosen
  }
}

extension String {
  fileprivate func padding(to width: Int) -> String {
    self + String(repeating: " ", count: max(0, width - self.count))
  }
}
