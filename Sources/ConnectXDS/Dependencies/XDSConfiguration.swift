internal import Connect

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
    /// Who gets reports of its loads: the server that the cluster comes from; nil for none.
    var reportServer: XDSBootstrap.Server?
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
  /// By name: those that routes lead to, and those that calls hold, as far as they are known.
  var clusters: [String: Cluster]

  /// There are no routes.
  struct Absence: Error {
    /// Why.
    var error: ConnectError
    /// By name: those that calls of earlier routes hold, as far as they are known.
    var clusters: [String: Cluster] = [:]
  }
}

extension [String: XDSConfiguration.Cluster] {
  /// Says where clusters come from, of which loads are reported.
  mutating func setReportServers(_ server: (_ cluster: String) -> XDSBootstrap.Server?) {
    func complete(_ leaf: XDSConfiguration.Leaf) -> XDSConfiguration.Leaf {
      var leaf = leaf
      leaf.reportServer = leaf.resource.reportsLoads ? server(leaf.name) : nil
      return leaf
    }
    self = self.mapValues { cluster in
      switch cluster {
      case .leaf(let leaf): .leaf(complete(leaf))
      case .aggregate(let leaves): .aggregate(leaves.map(complete))
      case .problem: cluster
      }
    }
  }
}
