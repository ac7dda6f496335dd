/// The four types of resources that this client asks for.
enum ResourceType: Sendable, Hashable, CaseIterable {
  case listener
  case routeConfiguration
  case cluster
  case endpoints

  /// The URL of the message type.
  var url: String { "type.googleapis.com/\(self.messageName)" }

  /// The full name of the message type; also the part of `xdstp` names.
  var messageName: String {
    switch self {
    case .listener: "envoy.config.listener.v3.Listener"
    case .routeConfiguration: "envoy.config.route.v3.RouteConfiguration"
    case .cluster: "envoy.config.cluster.v3.Cluster"
    case .endpoints: "envoy.config.endpoint.v3.ClusterLoadAssignment"
    }
  }

  /// Whether a resource that is missing in a response is deleted: each response has all resources of these types.
  var isDeletedByAbsence: Bool { self == .listener || self == .cluster }
}

/// A resource that was checked, and can be used.
enum Resource: Sendable, Hashable {
  case listener(ListenerResource)
  case routeConfiguration(RouteConfigurationResource)
  case cluster(ClusterResource)
  case endpoints(EndpointsResource)
}
