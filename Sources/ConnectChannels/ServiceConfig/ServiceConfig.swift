internal import Connect

/// How clients shall call a service: gRPC's service config
/// (<https://github.com/grpc/grpc/blob/master/doc/service_config.md>). A program gives it, or a resolver.
///
///     let config = try ServiceConfig(json: #"{ "loadBalancingConfig": [{ "round_robin": {} }] }"#)
public struct ServiceConfig: Hashable, Sendable {
  /// Rules for methods. The most specific rule that matches a method counts.
  public var methods: [MethodConfig]
  /// How calls are spread over endpoints; nil for the client's own choice, which is `pick_first` by default.
  public var loadBalancing: BalancingPolicy?
  /// The service to watch with `grpc.health.v1.Health/Watch`; empty for the whole server; nil for no health checks.
  public var healthCheckServiceName: String?
  /// Stops the attempts that the retry and hedging policies of ``methods`` ask for, when too many calls fail; nil for
  /// never. Shared by all calls of a channel.
  public var retryThrottling: RetryThrottling?
  /// How many HTTP/2 connections to one address are opened where servers limit streams (gRFC A105); at most 10 count. It
  /// raises the transport's own limit (`NIOHTTPClient.Configuration.Limits.http2ConnectionsPerAddress`) and never lowers it:
  /// the higher of the two counts.
  public var maximumConnectionsPerSubchannel: Int?

  /// A service config that is made in the program. What is left out has no rule.
  public init(
    methods: [MethodConfig] = [],
    loadBalancing: BalancingPolicy? = nil,
    healthCheckServiceName: String? = nil,
    retryThrottling: RetryThrottling? = nil,
    maximumConnectionsPerSubchannel: Int? = nil
  ) {
    self.methods = methods
    self.loadBalancing = loadBalancing
    self.healthCheckServiceName = healthCheckServiceName
    self.retryThrottling = retryThrottling
    self.maximumConnectionsPerSubchannel = maximumConnectionsPerSubchannel
  }

  /// When retries stop, because too many calls fail (gRFC A6). A bucket begins with `maximumTokens`, loses one
  /// with each failure, and gets `tokenRatio` with each success. Retries need more than half of the maximum.
  public struct RetryThrottling: Hashable, Sendable {
    /// The size of the bucket: 1 to 1,000.
    public var maximumTokens: Int
    /// How much a success adds to the bucket: above zero, with up to three decimals.
    public var tokenRatio: Double

    /// Throttling rules. Their values are not checked here.
    public init(maximumTokens: Int, tokenRatio: Double) {
      self.maximumTokens = maximumTokens
      self.tokenRatio = tokenRatio
    }
  }
}

// MARK: - JSON

extension ServiceConfig {
  /// Parses gRPC's JSON. Fields that nothing here knows are ignored; a known field with a wrong value is an
  /// error.
  ///
  /// - Throws: ``ServiceConfigError`` with the first error.
  public init(json: String) throws(ServiceConfigError) {
    try self.init(JSONNode(parsing: json))
  }

  private init(_ node: JSONNode) throws(ServiceConfigError) {
    self.init()
    for method in try node.member("methodConfig")?.elements() ?? [] {
      self.methods.append(try MethodConfig(method))
    }
    try Self.checkUnique(self.methods)
    if let policies = try node.member("loadBalancingConfig") {
      self.loadBalancing = try BalancingPolicy(list: policies)
    } else if let policy = try node.member("loadBalancingPolicy") {
      self.loadBalancing = try BalancingPolicy(deprecatedName: policy)
    }
    if let name = try node.member("healthCheckConfig")?.member("serviceName") {
      self.healthCheckServiceName = try name.string()
    }
    if let throttling = try node.member("retryThrottling") {
      self.retryThrottling = try RetryThrottling(throttling)
    }
    if let limit = try node.member("connectionScaling")?.member("maxConnectionsPerSubchannel") {
      self.maximumConnectionsPerSubchannel = min(try limit.integer(in: 1...Int(UInt32.max)), 10)
    }
  }

  private static func checkUnique(_ methods: [MethodConfig]) throws(ServiceConfigError) {
    var seen: Set<MethodConfig.Name> = []
    for (index, method) in methods.enumerated() {
      for (nameIndex, name) in method.names.enumerated() where !seen.insert(name).inserted {
        throw ServiceConfigError(
          path: "methodConfig[\(index)].name[\(nameIndex)]",
          problem: "\(name) is there twice; remove one of them"
        )
      }
    }
  }
}

extension ServiceConfig.RetryThrottling {
  init(_ node: JSONNode) throws(ServiceConfigError) {
    let tokens = try node.required("maxTokens").integer(in: 1...1_000)
    let ratioNode = try node.required("tokenRatio")
    // Decimals behind the third are ignored (gRFC A6).
    let ratio = try ratioNode.number()
    guard ratio >= 0.001, ratio <= 1_000_000 else {
      throw ratioNode.error("has to be at least 0.001, and is \(ratio)")
    }
    self.init(maximumTokens: tokens, tokenRatio: ((ratio * 1_000 + 1e-6).rounded(.down)) / 1_000)
  }
}

extension JSONNode {
  init(parsing text: String) throws(ServiceConfigError) {
    do throws(JSONParser.Failure) {
      self.init(try JSONParser.parse(text))
    } catch {
      throw ServiceConfigError(
        path: "",
        problem: "no JSON, line \(error.line), column \(error.column): \(error.problem)"
      )
    }
  }
}
