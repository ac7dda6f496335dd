import ArgumentParser
import ConnectChannels

/// Where calls of a benchmark go. All servers are the same one, at one address.
enum Fleet: String, ExpressibleByArgument, CaseIterable {
  /// Three servers, in turn.
  case servers
  /// A route to a cluster with one server.
  case route
  /// A route to a cluster that is balanced as one that a control plane brings, with one server.
  case mesh
  /// The same with three servers, in two localities.
  case meshOfThree

  func configure(_ configuration: inout ChannelConfiguration, port: Int) {
    let resolver = PushResolver()
    configuration.resolver = resolver
    switch self {
    case .servers:
      configuration.balancing = .roundRobin
      resolver.update(self.endpoints(["a", "a", "b"], port))
    case .route:
      let cluster = Cluster(endpoints: self.endpoints(["a"], port))
      resolver.update(Routing(routes: [Route(to: "mesh")], clusters: ["mesh": cluster]))
    case .mesh:
      resolver.update(self.mesh(["a"], port))
    case .meshOfThree:
      resolver.update(self.mesh(["a", "a", "b"], port))
    }
  }

  /// The same tree as `ConnectXDS` makes of a cluster with one priority.
  private func mesh(_ zones: [String], _ port: Int) -> Routing {
    let localities = Set(zones).sorted().map { zone in
      BalancingPolicy.WeightedChild(zone, weight: UInt32(zones.filter { $0 == zone }.count), .roundRobin)
    }
    let limits = CallLimits(maximumCalls: 1_024, statistics: CallStatistics(cluster: "mesh"))
    let cluster = Cluster(
      endpoints: self.endpoints(zones, port),
      balancing: .limited(limits, of: .priority([.init("first", .weightedTarget(localities))]))
    )
    return Routing(routes: [Route(to: "mesh")], clusters: ["mesh": cluster])
  }

  private func endpoints(_ zones: [String], _ port: Int) -> [Endpoint] {
    zones.enumerated().compactMap { index, zone in
      var endpoint = Endpoint("127.0.0.1:\(port)")
      endpoint?.key = "\(index)"
      endpoint?.zone = zone
      endpoint?.path = ["first", zone]
      return endpoint
    }
  }
}
