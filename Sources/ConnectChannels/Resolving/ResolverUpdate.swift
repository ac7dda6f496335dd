/// What a resolver has found for a name.
public struct ResolverUpdate: Hashable, Sendable {
  /// The endpoints, one for each server. An empty list means that the name resolves to nothing.
  public var endpoints: [Endpoint]
  /// gRPC's service config as JSON; nil if the resolver has none.
  public var serviceConfig: String?
  /// Routes and clusters; nil if the resolver has none. If there are some, ``endpoints`` are not used.
  public var routing: Routing?
  /// For how long the answer is valid; nil where the resolver does not know.
  public var timeToLive: Duration?

  /// An answer of a resolver.
  public init(
    endpoints: [Endpoint],
    serviceConfig: String? = nil,
    routing: Routing? = nil,
    timeToLive: Duration? = nil
  ) {
    self.endpoints = endpoints
    self.serviceConfig = serviceConfig
    self.routing = routing
    self.timeToLive = timeToLive
  }
}
