internal import ConnectChannels
internal import SwiftProtobuf

/// Decodes clusters (gRFC A27, A37).
struct ClusterDecoder {
  let bootstrap: XDSBootstrap

  func decode(_ cluster: Envoy_Config_Cluster_V3_Cluster, at place: FieldPlace) -> ClusterResource {
    let kind = self.kind(cluster, at: place)
    let policy = PolicyDecoder.policy(of: cluster, at: place)
    var resource = ClusterResource(kind: kind, policy: policy)
    if cluster.hasTransportSocket {
      let decoder = ClusterSecurityDecoder(providers: self.bootstrap.certificateProviders)
      resource.security = decoder.decode(cluster.transportSocket, at: place.field("transport_socket"))
    }
    if cluster.hasLrsServer {
      if case .self_p = cluster.lrsServer.configSourceSpecifier {
        resource.reportsLoads = true
      } else {
        place.field("lrs_server").report("ConfigSource is not self")
      }
    }
    let threshold = cluster.circuitBreakers.thresholds.first { $0.priority == .default }
    if let threshold, threshold.hasMaxRequests { resource.maximumCalls = threshold.maxRequests.value }
    if cluster.hasOutlierDetection {
      let place = place.field("outlier_detection")
      resource.outlierDetection = OutlierDetectionDecoder.decode(cluster.outlierDetection, at: place)
    }
    return resource
  }

  // MARK: - Kinds

  private func kind(_ cluster: Envoy_Config_Cluster_V3_Cluster, at place: FieldPlace) -> ClusterResource.Kind
  {
    switch cluster.clusterDiscoveryType {
    case .type(.eds): return self.endpoints(cluster, at: place.field("eds_cluster_config"))
    case .type(.logicalDns): return self.logicalDNS(cluster, at: place.field("load_assignment"))
    case .clusterType(let custom):
      return self.aggregate(custom, at: place.field("cluster_type").field("typed_config"))
    case .type, nil:
      place.field("type").report("unknown discovery type")
      return .aggregate([])
    }
  }

  private func endpoints(_ cluster: Envoy_Config_Cluster_V3_Cluster, at place: FieldPlace)
    -> ClusterResource.Kind
  {
    guard cluster.hasEdsClusterConfig else {
      place.report("field not present")
      return .endpoints(cluster.name)
    }
    let config = cluster.edsClusterConfig
    if !config.hasEdsConfig {
      place.field("eds_config").report("field not present")
    } else if !config.edsConfig.isSameServer {
      place.field("eds_config").report("ConfigSource is not ads or self")
    }
    if config.serviceName.isEmpty, cluster.name.hasPrefix("xdstp:") {
      place.field("service_name").report("must be set if Cluster resource has an xdstp name")
    }
    return .endpoints(config.serviceName.isEmpty ? cluster.name : config.serviceName)
  }

  private func logicalDNS(_ cluster: Envoy_Config_Cluster_V3_Cluster, at place: FieldPlace)
    -> ClusterResource.Kind
  {
    let nothing = ClusterResource.Kind.logicalDNS(host: "", port: 0)
    guard cluster.hasLoadAssignment else {
      place.report("field not present for LOGICAL_DNS cluster")
      return nothing
    }
    let localities = cluster.loadAssignment.endpoints
    guard let locality = localities.first, localities.count == 1 else {
      place.field("endpoints").report(
        "must contain exactly one locality for LOGICAL_DNS cluster, found \(localities.count)"
      )
      return nothing
    }
    let place = place.element("endpoints", 0)
    let endpoints = locality.lbEndpoints
    guard let first = endpoints.first, endpoints.count == 1 else {
      place.field("lb_endpoints").report(
        "must contain exactly one endpoint for LOGICAL_DNS cluster, found \(endpoints.count)"
      )
      return nothing
    }
    var field = place.element("lb_endpoints", 0).field("endpoint")
    guard case .endpoint(let endpoint) = first.hostIdentifier else {
      field.report("field not present")
      return nothing
    }
    field = field.field("address")
    guard endpoint.hasAddress else {
      field.report("field not present")
      return nothing
    }
    field = field.field("socket_address")
    guard case .socketAddress(let socket) = endpoint.address.address else {
      field.report("field not present")
      return nothing
    }
    return self.hostAndPort(socket, at: field)
  }

  private func hostAndPort(
    _ socket: Envoy_Config_Core_V3_SocketAddress,
    at place: FieldPlace
  ) -> ClusterResource.Kind {
    if !socket.resolverName.isEmpty {
      place.field("resolver_name").report("LOGICAL_DNS clusters must NOT have a custom resolver name set")
    }
    if socket.address.isEmpty { place.field("address").report("field not present") }
    if socket.portSpecifier == nil {
      place.field("port_value").report("field not present")
    } else if socket.portValue > 65_535 {
      place.field("port_value").report("invalid port")
    }
    return .logicalDNS(host: socket.address, port: Int(socket.portValue))
  }

  private func aggregate(
    _ custom: Envoy_Config_Cluster_V3_Cluster.CustomClusterType,
    at place: FieldPlace
  ) -> ClusterResource.Kind {
    typealias Config = Envoy_Extensions_Clusters_Aggregate_V3_ClusterConfig
    let config = custom.hasTypedConfig ? custom.typedConfig : nil
    guard let found = ExtensionMessage(config, at: place) else { return .aggregate([]) }
    guard found.type == Config.protoMessageName else {
      place.field("type_url").report("unknown cluster_type extension: \(found.type)")
      return .aggregate([])
    }
    guard let aggregate = found.parse(Config.self, "aggregate cluster config") else { return .aggregate([]) }
    if aggregate.clusters.isEmpty { found.place.field("clusters").report("must be non-empty") }
    return .aggregate(aggregate.clusters)
  }
}
