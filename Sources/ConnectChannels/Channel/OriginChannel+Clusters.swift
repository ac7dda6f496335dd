internal import Connect

/// A channel whose calls go through routes to clusters.
extension OriginChannel {
  /// Whether calls have somewhere to go: endpoints, or routes.
  var hasTargets: Bool { self.endpoints.areKnown || self.clusters?.areRouted == true }

  /// Calls go through routes from now on.
  ///
  /// - Returns: What routes calls.
  func apply(_ routing: Routing) -> RouteTable {
    let clusters = self.clusters ?? ChannelClusters(in: self.environment)
    self.clusters = clusters
    clusters.channel = self
    let wantsConnection = self.endpoints.takeWish()
    let handles = clusters.apply(routing, self.rules)
    // Calls in flight go on. Calls that wait for these endpoints come back here.
    self.endpoints.removeAll()
    if wantsConnection { clusters.connect() }
    self.clustersDidChange()
    return RouteTable(
      routing.routes,
      of: self.origin,
      to: handles,
      methods: self.rules.config?.methods ?? [],
      throttle: self.rules.throttle,
      numbers: clusters.numbers,
      clientHash: self.environment.shared.seed
    )
  }

  /// A cluster has another state, or has ended.
  func clustersDidChange() {
    guard let clusters = self.clusters else { return }
    if clusters.areOver {
      self.clusters = nil
      // The only endpoint then serves calls without a detour.
      self.endpoints.needsUpdate()
    }
    guard !self.isShutDown else {
      self.waitingDidChange()
      self.finishIfNothingIsLeft()
      return
    }
    if clusters.areRouted, self.resolution.isActive { self.publish(clusters.state) }
  }

  /// Where a request goes that comes here: the channel of a cluster; nil for the endpoints of this channel, or if nothing is
  /// known yet.
  func cluster(for request: inout HTTPStreamRequest) -> Result<OriginChannel?, ConnectError> {
    guard let clusters = self.clusters else { return .success(nil) }
    if let channel = clusters.channel(of: request) { return .success(channel) }
    guard clusters.areRouted else { return .success(nil) }
    // No call of a client that knows the routes: a transport's own, or one that an interceptor has sent to this origin.
    let method = MethodInfo(path: request.path, streamType: .bidirectionalStream)
    switch self.serviceRules.rules(for: method, request.headers) {
    case .method: return .success(nil)
    case .refused(let error): return .failure(error)
    case .route(_, let destination):
      request.follow(destination)
      return .success(clusters.channel(of: request))
    }
  }

  /// Starts a request that a route leads to a cluster; nil if it is one for the endpoints of this channel.
  func startRouted(_ request: HTTPStreamRequest, _ handler: any HTTPStreamHandler) -> (any HTTPStream)? {
    guard !self.isShutDown else { return nil }
    self.exitIdle()
    var request = request
    switch self.cluster(for: &request) {
    case .success(let channel): return channel?.startStream(request, handler: handler)
    case .failure(let error): return RefusedStream(error, handler, on: self.executor)
    }
  }

  /// Calls that came before the routes go on.
  func routeWaiting() {
    guard self.clusters?.areRouted == true else { return }
    self.waiting.forEach { stream in
      var request = stream.request
      switch self.cluster(for: &request) {
      case .success(let channel?): channel.take(stream)
      case .success(nil): self.waiting.append(stream)
      case .failure(let error): stream.fail(error)
      }
    }
    self.waitingDidChange()
  }
}
