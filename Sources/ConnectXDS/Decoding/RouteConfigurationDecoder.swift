internal import ConnectChannels
internal import SwiftProtobuf

/// Decodes route configurations (gRFC A27, A28).
struct RouteConfigurationDecoder {
  /// Whether routes may lead to a cluster specifier plugin. No kind of plugin is known here.
  private enum Plugin {
    /// Routes that lead to it are left out.
    case optional
    /// A problem was reported.
    case refused
  }

  private let plugins: [String: Plugin]

  /// - Parameter message: What has the plugins.
  init(_ message: Envoy_Config_Route_V3_RouteConfiguration, at place: FieldPlace) {
    var plugins: [String: Plugin] = [:]
    for (index, plugin) in message.clusterSpecifierPlugins.enumerated() {
      let place = place.element("cluster_specifier_plugins", index).field("extension")
      guard plugin.hasExtension else {
        place.report("field not present")
        continue
      }
      let name = plugin.extension.name
      if plugins[name] != nil { place.field("name").report("duplicate name \"\(name)\"") }
      plugins[name] = .refused
      let config = plugin.extension.hasTypedConfig ? plugin.extension.typedConfig : nil
      guard let found = ExtensionMessage(config, at: place.field("typed_config")) else { continue }
      if plugin.isOptional {
        plugins[name] = .optional
      } else {
        found.place.report("unsupported ClusterSpecifierPlugin type")
      }
    }
    self.plugins = plugins
  }

  func decode(
    _ message: Envoy_Config_Route_V3_RouteConfiguration,
    at place: FieldPlace
  ) -> RouteConfigurationResource {
    var hosts: [RouteConfigurationResource.VirtualHost] = []
    for (index, host) in message.virtualHosts.enumerated() {
      hosts.append(self.virtualHost(host, at: place.element("virtual_hosts", index)))
    }
    return RouteConfigurationResource(virtualHosts: hosts)
  }

  private func virtualHost(
    _ message: Envoy_Config_Route_V3_VirtualHost,
    at place: FieldPlace
  ) -> RouteConfigurationResource.VirtualHost {
    for (index, domain) in message.domains.enumerated() where !Self.isDomainPattern(domain) {
      place.element("domains", index).report("invalid domain pattern \"\(domain)\"")
    }
    if message.domains.isEmpty { place.field("domains").report("must be non-empty") }
    let overrides = FilterDecoder.overrides(message.typedPerFilterConfig, at: place)
    var retry: MethodConfig.RetryPolicy?
    if message.hasRetryPolicy {
      retry = RetryDecoder.policy(message.retryPolicy, at: place.field("retry_policy"))
    }
    var routes: [RouteResource] = []
    for (index, route) in message.routes.enumerated() {
      let place = place.element("routes", index)
      guard let route = self.route(route, hostRetry: retry, at: place) else { continue }
      routes.append(route)
    }
    return .init(domains: message.domains, routes: routes, overrides: overrides)
  }

  /// `*` may be the whole pattern, its beginning or its end.
  private static func isDomainPattern(_ pattern: String) -> Bool {
    let star = UInt8(ascii: "*")
    guard let first = pattern.utf8.first, let last = pattern.utf8.last else { return false }
    return !pattern.utf8.contains(star) || first == star || last == star
  }

  // MARK: - Routes

  /// - Returns: Nil for routes that are left out: calls of clients cannot match them, or their action is not known.
  private func route(
    _ message: Envoy_Config_Route_V3_Route,
    hostRetry: MethodConfig.RetryPolicy?,
    at place: FieldPlace
  ) -> RouteResource? {
    guard message.hasMatch else {
      place.field("match").report("field not present")
      return nil
    }
    guard let match = RouteMatchDecoder.match(message.match, at: place.field("match")) else { return nil }
    var action = RouteResource.Action.inappropriate
    if case .route(let forward) = message.action {
      guard let forward = self.forward(forward, hostRetry: hostRetry, at: place.field("route")) else {
        return nil
      }
      action = .forward(forward)
    }
    let overrides = FilterDecoder.overrides(message.typedPerFilterConfig, at: place)
    return RouteResource(match: match, action: action, overrides: overrides)
  }

  private func forward(
    _ message: Envoy_Config_Route_V3_RouteAction,
    hostRetry: MethodConfig.RetryPolicy?,
    at place: FieldPlace
  ) -> RouteForward? {
    var forward = RouteForward(shares: [], retry: hostRetry)
    if message.hasMaxStreamDuration {
      forward.maximumStreamDuration = Self.duration(message.maxStreamDuration, at: place)
    }
    HashPolicyDecoder.decode(message.hashPolicy, into: &forward, at: place)
    if message.hasRetryPolicy {
      forward.retry = RetryDecoder.policy(message.retryPolicy, at: place.field("retry_policy"))
    }
    switch message.clusterSpecifier {
    case .cluster(let name):
      if name.isEmpty { place.field("cluster").report("must be non-empty") }
      forward.shares = [.init(cluster: name, weight: 1)]
    case .weightedClusters(let clusters):
      forward.shares = Self.shares(clusters.clusters, at: place.field("weighted_clusters"))
    case .clusterSpecifierPlugin(let name):
      self.checkPlugin(name, at: place.field("cluster_specifier_plugin"))
      return nil
    case .clusterHeader, nil: return nil
    }
    return forward
  }

  private func checkPlugin(_ name: String, at place: FieldPlace) {
    if name.isEmpty {
      place.report("must be non-empty")
    } else if self.plugins[name] == nil {
      place.report("unknown cluster specifier plugin name \"\(name)\"")
    }
  }

  private static func duration(
    _ message: Envoy_Config_Route_V3_RouteAction.MaxStreamDuration,
    at place: FieldPlace
  ) -> Duration? {
    let place = place.field("max_stream_duration")
    if message.hasGrpcTimeoutHeaderMax {
      return message.grpcTimeoutHeaderMax.checked(at: place.field("grpc_timeout_header_max"))
    }
    guard message.hasMaxStreamDuration else { return nil }
    return message.maxStreamDuration.checked(at: place.field("max_stream_duration"))
  }

  private static func shares(
    _ clusters: [Envoy_Config_Route_V3_WeightedCluster.ClusterWeight],
    at place: FieldPlace
  ) -> [RouteForward.Share] {
    var shares: [RouteForward.Share] = []
    var sum: UInt64 = 0
    for (index, cluster) in clusters.enumerated() {
      let place = place.element("clusters", index)
      let overrides = FilterDecoder.overrides(cluster.typedPerFilterConfig, at: place)
      if cluster.name.isEmpty { place.field("name").report("must be non-empty") }
      if !cluster.hasWeight {
        place.field("weight").report("field not present")
      } else if cluster.weight.value == 0 {
        continue
      }
      sum += UInt64(cluster.weight.value)
      shares.append(.init(cluster: cluster.name, weight: cluster.weight.value, overrides: overrides))
    }
    if shares.isEmpty {
      place.report("no valid clusters specified")
    } else if sum > UInt32.max {
      place.report("sum of cluster weights exceeds uint32 max")
    }
    return shares
  }
}
