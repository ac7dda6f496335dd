/// Which of several clusters each call of an origin goes to.
public struct Routing: Sendable, Hashable {
  /// In this order: the first route that matches a call counts. A call that no route matches fails with `unavailable`.
  public var routes: [Route]
  /// By name.
  public var clusters: [String: Cluster]

  /// Routes to clusters.
  public init(routes: [Route], clusters: [String: Cluster]) {
    self.routes = routes
    self.clusters = clusters
  }
}
