/// All that a target's resources say together, at one time (gRFC A74).
struct XDSConfiguration: Sendable, Hashable {
  /// A cluster with servers of its own.
  struct Leaf: Sendable, Hashable {
    var name: String
    var resource: ClusterResource
    /// The servers; nil if they cannot be found.
    var endpoints: EndpointsResource?
    /// Why there are no servers, or fewer than there should be; nil if all is well.
    var note: String?
  }

  /// A cluster that routes lead to.
  enum Cluster: Sendable, Hashable {
    case leaf(Leaf)
    /// Leaves in order of preference (gRFC A37). At least one.
    case aggregate([Leaf])
    /// It cannot be used.
    case problem(String)
  }

  var listener: ListenerResource
  var virtualHost: RouteConfigurationResource.VirtualHost
  /// By name: those that routes lead to.
  var clusters: [String: Cluster]
}
