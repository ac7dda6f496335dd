internal import ConnectChannels

/// Routes by the name that clients call.
struct RouteConfigurationResource: Sendable, Hashable {
  struct VirtualHost: Sendable, Hashable {
    /// Exact names, `*.suffix`, `prefix.*`, or `*`.
    var domains: [String]
    var routes: [RouteResource]
    /// By name of the filter.
    var overrides: [String: FilterOverride] = [:]
  }

  var virtualHosts: [VirtualHost]
}

/// What takes the place of a filter's settings for some calls.
enum FilterOverride: Sendable, Hashable {
  case fault(FaultSettings)
}

/// Settings of fault injection (gRFC A33).
typealias FaultSettings = FaultInjection

/// A route of a virtual host.
struct RouteResource: Sendable, Hashable {
  enum Action: Sendable, Hashable {
    case forward(RouteForward)
    /// Calls fail: the route is for servers, or its action is not known to clients.
    case inappropriate
  }

  var match: RouteMatch
  var action: Action
  /// By name of the filter.
  var overrides: [String: FilterOverride] = [:]
}

/// Where the calls of a route go.
struct RouteForward: Sendable, Hashable {
  struct Share: Sendable, Hashable {
    var cluster: String
    var weight: UInt32
    /// By name of the filter.
    var overrides: [String: FilterOverride] = [:]
  }

  var shares: [Share]
  /// Nil for what the listener says; zero for no limit.
  var maximumStreamDuration: Duration?
  /// The route's own policy, or that of its virtual host; nil for none.
  var retry: MethodConfig.RetryPolicy?
  var hashPolicies: [RouteHashPolicy] = []
}
