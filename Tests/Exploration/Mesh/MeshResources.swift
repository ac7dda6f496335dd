internal import ConnectSimulation
internal import ConnectXDS
internal import SwiftProtobuf

/// What a control plane says of one target.
struct MeshState: Sendable, CustomStringConvertible {
  /// A set of servers.
  struct Group: Sendable {
    /// By priority.
    var servers: [[Int]]
    /// Whether the endpoints have another name than the cluster.
    var hasService: Bool
    /// How many times it was changed, so that old and new endpoints differ.
    var weight: UInt32 = 1
  }

  var groups: [String: Group] = [:]
  /// Clusters that consist of others.
  var aggregates: [String: [String]] = [:]
  /// The cluster of most calls, and the one of calls that match, or of a part of the calls.
  var main = ""
  var other = ""
  /// The share of `other` in percent; nil if calls with a header go there.
  var share: UInt32?

  /// The servers that calls may go to.
  var servers: Set<Int> { Set(self.servers(of: self.main) + self.servers(of: self.other)) }

  private func servers(of name: String) -> [Int] {
    if let parts = self.aggregates[name] { return parts.first.map { self.servers(of: $0) } ?? [] }
    return self.groups[name]?.servers.first ?? []
  }

  var description: String {
    let groups = self.groups.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value.servers)" }
    let parts = self.aggregates.sorted { $0.key < $1.key }.map { "\($0.key) of \($0.value)" }
    return "to \(self.main), and \(self.share.map { "\($0) %" } ?? "by a header") to \(self.other); "
      + (groups + parts).joined(separator: ", ")
  }
}

/// The types of resources.
enum MeshType: String, CaseIterable, Sendable {
  case listener = "envoy.config.listener.v3.Listener"
  case routes = "envoy.config.route.v3.RouteConfiguration"
  case cluster = "envoy.config.cluster.v3.Cluster"
  case endpoints = "envoy.config.endpoint.v3.ClusterLoadAssignment"

  var url: String { "type.googleapis.com/\(self.rawValue)" }
}

/// The messages of resources.
enum MeshMessages {
  static let target = "mesh.internal"
  static let routes = "routes"
  static let header = "x-other"

  static func any(_ message: any Message) -> Google_Protobuf_Any {
    // It fails for messages without required fields that are set only.
    (try? Google_Protobuf_Any(message: message)) ?? Google_Protobuf_Any()
  }

  static func listener(inline state: MeshState?) -> Google_Protobuf_Any {
    let manager =
      Envoy_Extensions_Filters_Network_HttpConnectionManager_V3_HttpConnectionManager.with { manager in
        if let state {
          manager.routeConfig = self.routeConfiguration(state)
        } else {
          manager.rds.routeConfigName = self.routes
          manager.rds.configSource.ads = .init()
        }
        manager.httpFilters = [
          .with {
            $0.name = "router"
            $0.typedConfig = self.any(Envoy_Extensions_Filters_Http_Router_V3_Router())
          }
        ]
      }
    return self.any(
      Envoy_Config_Listener_V3_Listener.with {
        $0.name = self.target
        $0.apiListener.apiListener = self.any(manager)
      }
    )
  }

  static func routeConfiguration(_ state: MeshState) -> Envoy_Config_Route_V3_RouteConfiguration {
    let main = Envoy_Config_Route_V3_Route.with { route in
      route.match.prefix = ""
      guard let share = state.share else {
        route.route.cluster = state.main
        return
      }
      route.route.weightedClusters.clusters = [(state.main, 100 - share), (state.other, share)].map { part in
        .with {
          $0.name = part.0
          $0.weight = .init(part.1)
        }
      }
    }
    let other = Envoy_Config_Route_V3_Route.with { route in
      route.match.prefix = ""
      route.match.headers = [
        .with {
          $0.name = self.header
          $0.presentMatch = true
        }
      ]
      route.route.cluster = state.other
    }
    return .with {
      $0.name = self.routes
      $0.virtualHosts = [
        .with {
          $0.domains = ["*"]
          $0.routes = state.share == nil ? [other, main] : [main]
        }
      ]
    }
  }

  static func cluster(_ name: String, _ group: MeshState.Group) -> Google_Protobuf_Any {
    self.any(
      Envoy_Config_Cluster_V3_Cluster.with {
        $0.name = name
        $0.type = .eds
        $0.edsClusterConfig.edsConfig.ads = .init()
        if group.hasService { $0.edsClusterConfig.serviceName = "\(name)-endpoints" }
      }
    )
  }

  static func aggregate(_ name: String, _ parts: [String]) -> Google_Protobuf_Any {
    self.any(
      Envoy_Config_Cluster_V3_Cluster.with {
        $0.name = name
        $0.clusterType.name = "envoy.clusters.aggregate"
        $0.clusterType.typedConfig = self.any(
          Envoy_Extensions_Clusters_Aggregate_V3_ClusterConfig.with { $0.clusters = parts }
        )
      }
    )
  }

  /// - Parameter isBroken: Whether it leaves a priority out.
  static func endpoints(
    _ name: String,
    _ group: MeshState.Group,
    of service: SimulatedService,
    isBroken: Bool = false
  ) -> Google_Protobuf_Any {
    self.any(
      Envoy_Config_Endpoint_V3_ClusterLoadAssignment.with { assignment in
        assignment.clusterName = name
        for (priority, servers) in group.servers.enumerated() {
          let byZone = Dictionary(grouping: servers) { service[$0].zone }
          for (zone, members) in byZone.sorted(by: { $0.key < $1.key }) {
            assignment.endpoints.append(
              .with {
                $0.priority = UInt32(priority + (isBroken ? 1 : 0))
                $0.locality.zone = zone
                $0.loadBalancingWeight = .init(UInt32(members.count) * group.weight)
                $0.lbEndpoints = members.map { self.endpoint(service[$0].address) }
              }
            )
          }
        }
      }
    )
  }

  private static func endpoint(_ address: String) -> Envoy_Config_Endpoint_V3_LbEndpoint {
    let colon = address.lastIndex(of: ":") ?? address.endIndex
    return .with {
      $0.endpoint.address.socketAddress.address = String(address[..<colon])
      $0.endpoint.address.socketAddress.portValue = UInt32(address[colon...].dropFirst()) ?? 0
    }
  }
}
