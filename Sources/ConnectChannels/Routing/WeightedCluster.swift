/// A cluster, and its share of the calls of a route.
public struct WeightedCluster: Sendable, Hashable {
  /// The cluster's name in ``Routing/clusters``.
  public var name: String
  /// The share relative to the route's other clusters. 0 for no calls.
  public var weight: UInt32
  /// In place of the route's ``Route/fault``; nil, the default, for that.
  public var fault: FaultInjection?

  /// A cluster with a weight.
  public init(name: String, weight: UInt32, fault: FaultInjection? = nil) {
    self.name = name
    self.weight = weight
    self.fault = fault
  }
}
