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

  init(in environment: ChannelEnvironment) {
    self.environment = environment
    self.config = environment.configuration.serviceConfig
    self.publish()
    self.expectUpdate()
  }

  /// Has calls wait for the resolver's next answer, if that may have other rules.
  func expectUpdate() {
    if self.environment.shared.resolver.mayBringServiceConfig { self.serviceRules.expectUpdate() }
  }

  /// Takes over the service config of a resolver's answer. One that is invalid keeps the last good one.
  func apply(_ json: String?) {
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

  /// Calls follow the current service config from now on.
  func publish() {
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
    self.environment.configuration.balancing ?? self.config?.loadBalancing ?? .pickFirst
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
