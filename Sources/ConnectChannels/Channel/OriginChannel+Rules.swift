package import Connect

/// What the service config says of calls.
extension OriginChannel: RuledEndpoint {
  /// gRFC A105's bound on what a service config may ask for.
  private static var maximumConnections: Int { 10 }

  package func callsWaitForRules(_ count: Int) -> ConnectError? {
    if self.isShutDown { return .clientShutDown }
    guard count <= self.maximumWaiting else { return self.tooManyWait(count - 1) }
    self.exitIdle()
    return nil
  }

  /// Whether the resolver's next answer may have other rules.
  var mayFindRules: Bool { self.environment.shared.resolver.mayBringServiceConfig }

  /// Calls follow the current service config from now on.
  func publishRules() {
    let config = self.serviceConfig ?? ServiceConfig()
    self.throttle = self.environment.shared.throttle(config.retryThrottling)
    guard !config.methods.isEmpty else {
      self.serviceRules.update(nil)
      return
    }
    let throttle = self.throttle
    let table = MethodTable(config.methods) { MethodRules($0, throttle) }
    self.serviceRules.update { table.rules(service: String($0.service), method: String($0.name)) }
  }

  /// How many HTTP/2 connections an endpoint may have: the service config raises the transport's limit.
  var maximumHTTP2Connections: Int {
    let wanted = min(self.serviceConfig?.maximumConnectionsPerSubchannel ?? 1, Self.maximumConnections)
    return max(self.environment.limits.http2Connections, wanted)
  }
}
