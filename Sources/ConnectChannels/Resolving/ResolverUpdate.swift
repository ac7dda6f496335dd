/// What a resolver has found for a name.
public struct ResolverUpdate: Hashable, Sendable {
  /// One for each server. None means that the name resolves to nothing.
  public var endpoints: [Endpoint]
  /// gRPC's service config as JSON; nil if the resolver has none.
  public var serviceConfig: String?
  /// For how long the answer is valid; nil where the resolver does not know.
  public var timeToLive: Duration?

  public init(endpoints: [Endpoint], serviceConfig: String? = nil, timeToLive: Duration? = nil) {
    self.endpoints = endpoints
    self.serviceConfig = serviceConfig
    self.timeToLive = timeToLive
  }
}
