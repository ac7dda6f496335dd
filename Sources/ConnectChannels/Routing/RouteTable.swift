internal import Connect

/// The routes of a channel, with the clusters that they lead to. It holds the clusters.
struct RouteTable: Sendable {
  private let routes: [PreparedRoute]
  /// By name. Names that are not here are unknown.
  private let clusters: [String: CallCluster]
  private let methods: MethodTable<MethodConfig>
  private let throttle: RetryBudget?
  private let numbers: CallNumbers
  private let clientHash: UInt64
  private let origin: Origin

  /// - Parameters:
  ///   - clusters: By name; the routes' clusters that are known.
  ///   - methods: The service config for methods.
  ///   - clientHash: The hash of the client, for ``RouteHashPolicy/client``.
  init(
    _ routes: [Route],
    of origin: Origin,
    to clusters: [String: CallCluster],
    methods: [MethodConfig],
    throttle: RetryBudget?,
    numbers: CallNumbers,
    clientHash: UInt64
  ) {
    self.routes = routes.map(PreparedRoute.init)
    self.origin = origin
    self.clusters = clusters
    self.methods = MethodTable(methods) { $0 }
    self.throttle = throttle
    self.numbers = numbers
    self.clientHash = clientHash
  }

  /// What routes the calls of a method.
  func router(for method: MethodInfo) -> any CallRouter {
    let config = self.methods.rules(service: String(method.service), method: String(method.name))
    var routes: [MethodRouter.Candidate] = []
    for route in self.routes where route.path.matches(method.path) {
      routes.append(self.prepare(route, config))
    }
    let noRoute = ConnectError.notRouted(
      "no route of \(self.origin) matches the call of \(method.path); add a route for it, or a last one for all calls"
    )
    return MethodRouter(routes, numbers: self.numbers, noRoute: noRoute)
  }

  private func prepare(_ prepared: PreparedRoute, _ config: MethodConfig?) -> MethodRouter.Candidate {
    let route = prepared.route
    var config = config ?? MethodConfig(names: [])
    if let timeout = route.timeout { config.timeout = timeout }
    if let attempts = route.attempts { config.attempts = attempts }
    let rules = MethodRules(
      config,
      self.throttle,
      timeoutSource: route.timeout == nil ? "service config" : "route",
      attemptsSource: route.attempts == nil ? "service config" : "route"
    )
    var destinations: [Result<CallDestination, ConnectError>] = []
    for cluster in route.clusters {
      guard let known = self.clusters[cluster.name] else {
        let error = ConnectError.notRouted(
          "a route of \(self.origin) leads to the cluster \"\(cluster.name)\", which does not exist; "
            + "add it to the clusters of the routing, or correct the route"
        )
        destinations.append(.failure(error))
        continue
      }
      destinations.append(.success(CallDestination(cluster: known)))
    }
    return MethodRouter.Candidate(prepared, destinations, rules, clientHash: self.clientHash)
  }
}

extension ConnectError {
  /// No server was asked, and none would be by another attempt.
  static func notRouted(_ message: String) -> ConnectError {
    ConnectError(code: .unavailable, message: message).beforeRoutes
  }

  /// The routes refuse a call before it is sent. Another attempt would have the same end.
  var beforeRoutes: ConnectError {
    var error = self.asFinal
    error.isUnsent = true
    return error
  }
}
