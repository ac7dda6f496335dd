internal import Connect

/// Leads the calls of a channel through routes to its clusters. To be used on the channel's executor.
struct ChannelRoutes {
  private let channel: OriginChannel

  init(_ channel: OriginChannel) { self.channel = channel }

  /// Whether calls have somewhere to go: endpoints, or routes.
  var haveTargets: Bool { self.channel.endpoints.areKnown || self.channel.clusters?.areRouted == true }

  /// Calls go through routes from now on.
  ///
  /// - Returns: What routes calls; nil if that has not changed.
  func apply(_ routing: Routing) -> RouteTable? {
    let clusters = self.channel.clusters ?? ChannelClusters(in: self.channel.environment)
    self.channel.clusters = clusters
    clusters.channel = self.channel
    guard let handles = clusters.apply(routing, self.channel.rules) else { return nil }
    let wantsConnection = self.channel.endpoints.wantsConnection
    self.channel.endpoints.wantsConnection = false
    // Calls in flight go on. Calls that wait for these endpoints come back here.
    self.channel.endpoints.removeAll()
    if wantsConnection { clusters.connect() }
    self.clustersDidChange()
    return RouteTable(
      routing.routes,
      of: self.channel.origin,
      to: handles,
      methods: self.channel.rules.config?.methods ?? [],
      throttle: self.channel.rules.throttle,
      numbers: clusters.numbers,
      clientHash: self.channel.environment.shared.seed
    )
  }

  /// A cluster has another state, or has ended.
  func clustersDidChange() {
    guard let clusters = self.channel.clusters else { return }
    if !clusters.areRouted, clusters.table.isEmpty {
      self.channel.clusters = nil
      // The only endpoint then serves calls without a detour.
      self.channel.endpoints.needsUpdate()
    }
    guard !self.channel.isShutDown else {
      self.channel.waitingDidChange()
      self.channel.finishIfNothingIsLeft()
      return
    }
    guard clusters.areRouted, self.channel.resolution.isActive else { return }
    self.channel.publish(clusters.table.state)
  }

  /// Where a request goes that comes here: the channel of a cluster; nil for the endpoints of this channel, or if nothing is
  /// known yet.
  func cluster(for request: inout HTTPStreamRequest) -> Result<OriginChannel?, ConnectError> {
    guard let clusters = self.channel.clusters else { return .success(nil) }
    if let channel = clusters.channel(of: request) { return .success(channel) }
    guard clusters.areRouted else { return .success(nil) }
    // No call of a client that knows the routes: a transport's own, or one that an interceptor has sent to this origin.
    let method = MethodInfo(path: request.path, streamType: .bidirectionalStream)
    switch self.channel.serviceRules.rules(for: method, request.headers) {
    case .method: return .success(nil)
    case .refused(let error): return .failure(error)
    case .route(_, let destination):
      request.follow(destination)
    // Faults are for the calls of a client.
    case .fault(let fault):
      request.follow(fault.destination)
    }
    return .success(clusters.channel(of: request))
  }

  /// Starts a request that a route leads to a cluster; nil if it is one for the endpoints of this channel.
  func start(_ request: HTTPStreamRequest, _ handler: any HTTPStreamHandler) -> (any HTTPStream)? {
    guard !self.channel.isShutDown else { return nil }
    self.channel.exitIdle()
    // Calls of a client that knows the routes: their requests are not copied.
    if let channel = self.channel.clusters?.channel(of: request) {
      return self.start(request, handler, in: channel)
    }
    var request = request
    switch self.cluster(for: &request) {
    case .success(let channel): return channel.map { self.start(request, handler, in: $0) }
    case .failure(let error): return RefusedStream(error, handler, on: self.channel.executor)
    }
  }

  private func start(
    _ request: HTTPStreamRequest,
    _ handler: any HTTPStreamHandler,
    in channel: OriginChannel
  ) -> any HTTPStream {
    let stream = channel.startStream(request, handler: handler)
    if channel.endpoints.subchannels.list.isEmpty { self.takeStrandedLater() }
    return stream
  }

  /// Goes on with a call that waited above its cluster.
  private func take(_ stream: WaitingStream, _ request: HTTPStreamRequest, to channel: OriginChannel) {
    // From now on it holds its cluster, and has the hash of its route.
    stream.request = request
    let choice =
      channel.isShutDown
      ? .fail(.clientShutDown)
      : channel.endpoints.pick(stream.request, seed: stream.seed, isNew: !stream.wasTakenBack)
    channel.exitIdle()
    if let error = channel.put(stream, choice) { stream.fail(error) }
  }

  /// Calls that came before the routes go on.
  func takeWaiting() {
    guard let clusters = self.channel.clusters, clusters.areRouted else { return }
    self.channel.waiting.forEach { stream in
      var request = stream.request
      switch self.cluster(for: &request) {
      case .success(let channel?): self.take(stream, request, to: channel)
      case .success(nil): self.channel.waiting.append(stream)
      case .failure(let error): stream.fail(error)
      }
    }
    self.channel.waitingDidChange()
    self.takeStrandedLater()
  }

  /// Calls choose again if they wait in a cluster without endpoints, and routes do not lead there any more. Before that, the cluster
  /// hears of its last update, and fails calls that do not wait until a server can be reached.
  private func takeStrandedLater() {
    self.channel.executor.execute(with: self.channel) { channel in
      let stranded = channel.clusters?.takeStranded() ?? []
      if stranded.isEmpty { return }
      for stream in stranded {
        stream.request.destination = nil
        channel.waiting.append(stream)
      }
      ChannelRoutes(channel).takeWaiting()
    }
  }
}
