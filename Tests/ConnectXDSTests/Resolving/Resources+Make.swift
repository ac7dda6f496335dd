import Connect
import ConnectChannels

@testable import ConnectXDS

extension ListenerResource {
  static func inline(_ routes: RouteResource..., filters: [Filter] = []) -> ListenerResource {
    ListenerResource(
      routes: .inline(RouteConfigurationResource(virtualHosts: [.init(domains: ["*"], routes: routes)])),
      filters: filters
    )
  }

  static func named(_ name: String) -> ListenerResource {
    ListenerResource(routes: .named(name), filters: [])
  }
}

extension RouteConfigurationResource {
  static func to(_ clusters: String..., domain: String = "*") -> RouteConfigurationResource {
    RouteConfigurationResource(
      virtualHosts: [.init(domains: [domain], routes: clusters.map { .to($0) })]
    )
  }
}

extension RouteResource {
  static func to(_ clusters: String...) -> RouteResource {
    RouteResource(
      match: .all,
      action: .forward(RouteForward(shares: clusters.map { .init(cluster: $0, weight: 1) }))
    )
  }
}

extension ClusterResource {
  static func endpoints(
    _ service: String,
    _ policy: Policy = .byLocality(.roundRobin),
    reportsLoads: Bool = false
  ) -> ClusterResource {
    var cluster = ClusterResource(kind: .endpoints(service), policy: policy)
    cluster.reportsLoads = reportsLoads
    return cluster
  }

  static func aggregate(_ clusters: String...) -> ClusterResource {
    ClusterResource(kind: .aggregate(clusters), policy: .byLocality(.roundRobin))
  }
}

extension EndpointsResource {
  /// - Parameter priorities: For each, localities with their addresses.
  static func priorities(_ priorities: [[(String, [String])]]) -> EndpointsResource {
    EndpointsResource(
      priorities: priorities.map { localities in
        localities.map { zone, addresses in
          Locality(name: XDSLocality(zone: zone), weight: 1, endpoints: addresses.compactMap { Endpoint($0) })
        }
      }
    )
  }

  static func at(_ addresses: String...) -> EndpointsResource { .priorities([[("a", addresses)]]) }
}
