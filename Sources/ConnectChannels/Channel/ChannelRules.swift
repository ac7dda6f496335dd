internal import Connect
internal import Logging

/// The service config that a channel follows, and what it says of calls. Confined to the channel's executor, but for
/// ``serviceRules``.
final class ChannelRules {
  /// gRFC A105's bound on what a service config may ask for.
  private static var maximumConnections: Int { 10 }

  let serviceRules = ServiceRules()
  private let environment: ChannelEnvironment
  private(set) var config: ServiceConfig?
  /// The retry budget of the current service config. Kept, so that its tokens survive.
  private(set) var throttle: RetryBudget?
  /// The last service config that could not be used.
  private var refused: String?
  /// What the channel above has its cluster follow; nil for the channel of an origin.
  private var policyOfCluster: BalancingPolicy?
  /// Why the cluster has no servers, if the routes say so.
  private(set) var problemOfCluster: String?
  /// The last routes that could be used; nil if calls go to the endpoints of the origin.
  private(set) var routing: Routing?
  /// The last routes that could not be used.
  private var refusedRouting: Routing?

  init(in environment: ChannelEnvironment) {
    self.environment = environment
    self.config = environment.configuration.serviceConfig
    self.publish()
    self.expectUpdate()
  }

  /// Has calls wait for the resolver's next answer, if that may have other rules.
  func expectUpdate() {
    // Nobody asks the channel of a cluster.
    guard self.environment.cluster == nil else { return }
    if self.environment.shared.resolver.mayBringServiceConfig || self.environment.configuration.routing != nil
    {
      self.serviceRules.expectUpdate()
    }
  }

  /// Takes over the service config of a resolver's answer. One that is invalid keeps the last good one.
  func apply(_ json: String?) {
    guard self.policyOfCluster == nil else { return }
    defer { self.throttle = self.environment.shared.throttle(self.config?.retryThrottling) }
    guard let json else {
      self.config = self.environment.configuration.serviceConfig
      return
    }
    do throws(ServiceConfigError) {
      self.config = try ServiceConfig(json: json)
    } catch {
      guard json != self.refused else { return }
      self.refused = json
      self.environment.logger.warning(
        "the service config that the resolver has found cannot be used; the one before stays",
        metadata: ["origin": "\(self.environment.origin)", "error": "\(error)"]
      )
    }
  }

  /// The channel of a cluster follows these rules of the channel above.
  func follow(_ settings: ClusterMember.Settings) {
    self.config = settings.config
    self.policyOfCluster = settings.policy
    self.problemOfCluster = settings.cluster.problem
  }

  /// Where calls go by a resolver's answer.
  enum Way {
    /// To the endpoints of the answer.
    case endpoints
    case routes(Routing)
    /// Where they went before: the answer's routes cannot be used.
    case asBefore(ConnectError)
  }

  /// Takes over the routes of a resolver's answer, or those of the program. Routes that cannot be used keep the last good ones.
  func way(_ found: Routing?) -> Way {
    guard let routing = found ?? self.environment.configuration.routing else {
      self.routing = nil
      return .endpoints
    }
    guard let problem = routing.problem else {
      self.routing = routing
      return .routes(routing)
    }
    let error = self.unusable(problem, isFound: found != nil)
    if routing != self.refusedRouting {
      self.refusedRouting = routing
      self.environment.logger.warning(
        "routes cannot be used; those before stay, if there are any",
        metadata: ["origin": "\(self.environment.origin)", "error": "\(error)"]
      )
    }
    return self.routing.map { .routes($0) } ?? .asBefore(error)
  }

  private func unusable(_ problem: String, isFound: Bool) -> ConnectError {
    let source = isFound ? "that the resolver has found" : "of ChannelConfiguration.routing"
    return ConnectError(
      code: isFound ? .unavailable : .failedPrecondition,
      message: "the routes of \(self.environment.origin) \(source) cannot be used: \(problem)"
    )
  }

  /// Calls are routed from now on.
  func publish(_ routes: RouteTable) {
    self.serviceRules.update(routing: { routes.router(for: $0) })
  }

  /// No call can be made until there are other routes.
  func refuse(_ error: ConnectError) {
    self.serviceRules.update(routing: { _ in MethodRouter(refusing: error) })
  }

  /// The channel is idle. It does not hold the clusters then: other channels to the origin may still have them.
  func leaveRoutes() { self.serviceRules.update(nil) }

  /// Calls follow the current service config from now on.
  func publish() {
    guard self.policyOfCluster == nil else { return }
    let config = self.config ?? ServiceConfig()
    self.throttle = self.environment.shared.throttle(config.retryThrottling)
    guard !config.methods.isEmpty else {
      self.serviceRules.update(nil)
      return
    }
    let throttle = self.throttle
    let table = MethodTable(config.methods) { MethodRules($0, throttle) }
    self.serviceRules.update { table.rules(service: String($0.service), method: String($0.name)) }
  }

  var policy: BalancingPolicy {
    self.policyOfCluster ?? self.environment.configuration.balancing ?? self.config?.loadBalancing
      ?? .pickFirst
  }

  var healthCheckedService: String? {
    self.environment.configuration.healthCheckedService ?? self.config?.healthCheckServiceName
  }

  /// How many HTTP/2 connections an endpoint may have: the service config raises the transport's limit.
  var maximumHTTP2Connections: Int {
    let wanted = min(self.config?.maximumConnectionsPerSubchannel ?? 1, Self.maximumConnections)
    return max(self.environment.limits.http2Connections, wanted)
  }
}
