/// MeshResources for control planes, as protobuf's JSON.
enum MeshResources {
  static let ads: JSON = ["ads": [:], "resource_api_version": "V3"]
  private static let envoy = "type.googleapis.com/envoy."

  static let router: JSON = [
    "name": "router", "typed_config": ["@type": "\(envoy)extensions.filters.http.router.v3.Router"],
  ]

  /// A listener whose routes have a resource.
  static func listener(_ name: String, routes: String) -> JSON {
    [
      "name": .string(name),
      "api_listener": [
        "api_listener": [
          "@type": "\(envoy)extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
          "rds": ["config_source": ads, "route_config_name": .string(routes)],
          "http_filters": [router],
        ]
      ],
    ]
  }

  static func routes(_ name: String, _ routes: [JSON]) -> JSON {
    ["name": .string(name), "virtual_hosts": [["name": "all", "domains": ["*"], "routes": .array(routes)]]]
  }

  static func route(_ match: JSON = ["prefix": ""], to cluster: String) -> JSON {
    ["match": match, "route": ["cluster": .string(cluster)]]
  }

  static func route(_ match: JSON = ["prefix": ""], to shares: [(String, Int)]) -> JSON {
    let clusters = shares.map { name, weight -> JSON in
      ["name": .string(name), "weight": .number(Double(weight))]
    }
    return ["match": match, "route": ["weighted_clusters": ["clusters": .array(clusters)]]]
  }

  static func cluster(_ name: String, _ more: JSON = [:]) -> JSON {
    let cluster: JSON = ["name": .string(name), "type": "EDS", "eds_cluster_config": ["eds_config": ads]]
    return cluster.merging(more)
  }

  /// A cluster that consists of others, in this order.
  static func aggregate(_ name: String, of parts: [String]) -> JSON {
    let config: JSON = [
      "@type": "\(envoy)extensions.clusters.aggregate.v3.ClusterConfig",
      "clusters": .array(parts.map { .string($0) }),
    ]
    return [
      "name": .string(name),
      "cluster_type": ["name": "envoy.clusters.aggregate", "typed_config": config],
    ]
  }

  /// TLS with the bootstrap's provider `certificates`, for roots and for the client's identity.
  static func mutualTLS(names: [JSON]) -> JSON {
    self.tls(["tls_certificate_provider_instance": ["instance_name": "certificates"]], names)
  }

  /// The same without an identity of the client.
  static func clientTLS(names: [JSON]) -> JSON { self.tls([:], names) }

  private static func tls(_ identity: JSON, _ names: [JSON]) -> JSON {
    let validation: JSON = [
      "validation_context": [
        "ca_certificate_provider_instance": ["instance_name": "certificates"],
        "match_subject_alt_names": .array(names),
      ]
    ]
    return [
      "transport_socket": [
        "name": "envoy.transport_sockets.tls",
        "typed_config": [
          "@type": "\(envoy)extensions.transport_sockets.tls.v3.UpstreamTlsContext",
          "common_tls_context": identity.merging(validation),
        ],
      ]
    ]
  }

  /// A policy for endpoints, alone or within each locality.
  static func policy(_ name: String, _ type: String, _ settings: JSON = [:], byLocality: Bool = false) -> JSON
  {
    let config: JSON = ["@type": "\(envoy)extensions.load_balancing_policies.\(name).v3.\(type)"]
    let policy: JSON = [
      "policies": [
        ["typed_extension_config": ["name": .string(name), "typed_config": config.merging(settings)]]
      ]
    ]
    guard byLocality else { return ["load_balancing_policy": policy] }
    return self.policy("wrr_locality", "WrrLocality", ["endpoint_picking_policy": policy])
  }

  static func endpoints(_ cluster: String, _ localities: [JSON]) -> JSON {
    ["cluster_name": .string(cluster), "endpoints": .array(localities)]
  }

  static func locality(
    _ zone: String,
    _ addresses: [String],
    weight: Int = 1,
    priority: Int = 0,
    health: String = "UNKNOWN",
    weights: [Int] = []
  ) -> JSON {
    let endpoints = addresses.enumerated().map { index, address -> JSON in
      let colon = address.lastIndex(of: ":") ?? address.endIndex
      let port = Double(address[colon...].dropFirst()) ?? 0
      return [
        "health_status": .string(health),
        "load_balancing_weight": .number(Double(index < weights.count ? weights[index] : 1)),
        "endpoint": [
          "address": [
            "socket_address": ["address": .string(String(address[..<colon])), "port_value": .number(port)]
          ]
        ],
      ]
    }
    return [
      "locality": ["region": "r", "zone": .string(zone)], "lb_endpoints": .array(endpoints),
      "load_balancing_weight": .number(Double(weight)), "priority": .number(Double(priority)),
    ]
  }
}
