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
  /// What is done with the header's value before it is hashed (gRFC A42), by index of the policy. Others are hashed as they are.
  var hashRewrites: [Int: HashRewrite] = [:]

  /// A replacement of all that a regular expression matches.
  struct HashRewrite: Sendable, Hashable {
    var pattern: String
    /// May name groups of the pattern: `\1`.
    var substitution: String
  }
}
