internal import Connect
internal import Logging

/// Where a channel's endpoints come from.
extension OriginChannel {
  /// Begins to look for endpoints, unless that is going on.
  func exitIdle() {
    guard self.watch == nil, !self.isShutDown else { return }
    self.lastUse = self.executor.now
    self.resolutionError = nil
    self.resolutionStart = self.executor.now
    self.watchNumber += 1
    let number = self.watchNumber
    self.watch = self.environment.shared.resolver.watch(self.origin, on: self.executor) {
      [weak self] answer in
      // Later, so that a resolver may answer at once.
      guard let self else { return }
      self.executor.execute { self.resolved(answer, by: number) }
    }
    // Runs after an immediate answer of the resolver, which needs no timer.
    self.executor.execute { [weak self] in self?.limitResolution(number) }
    self.scheduleIdleCheck(after: self.environment.configuration.idleTimeout)
    // Last, since an observer may start a call.
    if self.state == .idle { self.publish(.connecting) }
  }

  private func resolved(_ answer: Result<ResolverUpdate, ConnectError>, by number: Int) {
    guard number == self.watchNumber, self.watch != nil else { return }
    switch answer {
    case .success(let update):
      self.resolverUpdates += 1
      self.environment.report(.resolved(endpoints: update.endpoints.count))
      self.lastGood = update
      self.resolutionError = nil
      self.apply(update)
    case .failure(let error):
      self.environment.logger.debug(
        "name resolution failed",
        metadata: ["origin": "\(self.origin)", "error": "\(error)"]
      )
      self.environment.report(.resolutionFailed(error))
      self.resolutionFailed(error)
    }
  }

  private func limitResolution(_ number: Int) {
    guard number == self.watchNumber, self.balancer == nil else { return }
    self.resolutionTimer = self.schedule(after: self.environment.connectTimeout) {
      $0.resolutionTimedOut(number)
    }
  }

  private func resolutionTimedOut(_ number: Int) {
    guard number == self.watchNumber, self.balancer == nil else { return }
    self.resolutionFailed(
      ConnectError(
        code: .unavailable,
        message:
          "resolving the name of \(self.origin) timed out after \(self.environment.connectTimeout)"
      )
    )
  }

  /// Keeps the last good answer. Without one, calls fail.
  private func resolutionFailed(_ error: ConnectError) {
    guard self.balancer == nil else { return }
    if let lastGood = self.lastGood {
      self.apply(lastGood)
      return
    }
    self.resolutionError = error
    self.publish(.transientFailure)
    for _ in 0..<self.waiting.count {
      guard let stream = self.waiting.popFirst() else { break }
      if stream.request.waitsForReady {
        stream.queued(in: self, as: self.waiting.append(stream))
      } else {
        stream.fail(error)
      }
    }
    self.serviceRules.updateFailed()
    self.waitingDidChange()
  }

  /// A connection has failed, or its server goes away.
  func addressesMayBeOutOfDate() {
    let now = self.executor.now
    // A large fleet that fails asks once, however the resolver limits such requests.
    if let last = self.lastResolutionRequest, now - last < .seconds(1) { return }
    self.lastResolutionRequest = now
    self.watch?.resolveAgain()
  }

  // MARK: - Endpoints

  private func apply(_ update: ResolverUpdate) {
    self.resolutionTimer?.cancel()
    self.resolutionTimer = nil
    self.applyServiceConfig(update.serviceConfig)
    let configuration = self.environment.configuration
    let policy = configuration.balancing ?? self.serviceConfig?.loadBalancing ?? .pickFirst
    if self.balancer == nil || policy != self.policy {
      self.policy = policy
      // From the same seed for all channels to the origin.
      var random = SplitMix64(seed: self.environment.shared.seed)
      self.balancer = policy.makeBalancer(random: &random)
    }
    guard var balancer = self.balancer else { return }
    let endpoints = balancer.select(update.endpoints.withoutDuplicates(), random: &self.random)
    self.balancer = balancer
    self.replaceSubchannels(endpoints.withoutDuplicates())
    self.updateOutliers()
    if endpoints.isEmpty { self.addressesMayBeOutOfDate() }
    self.update()
    // Last, since waiting calls go on here.
    self.publishRules()
  }

  /// A service config that is invalid keeps the last good one.
  private func applyServiceConfig(_ json: String?) {
    guard let json else {
      self.serviceConfig = self.environment.configuration.serviceConfig
      return
    }
    do throws(ServiceConfigError) {
      self.serviceConfig = try ServiceConfig(json: json)
    } catch {
      guard json != self.refusedServiceConfig else { return }
      self.refusedServiceConfig = json
      self.environment.logger.warning(
        "the service config that the resolver has found cannot be used; the one before stays",
        metadata: ["origin": "\(self.origin)", "error": "\(error)"]
      )
    }
  }

  private func replaceSubchannels(_ endpoints: [Endpoint]) {
    var old: [Endpoint.Identity: Subchannel] = [:]
    for subchannel in self.subchannels { old[subchannel.endpoint.identity] = subchannel }
    let isEager = self.policy.keepsAllConnected
    let resolution = self.executor.now - self.resolutionStart
    let before = self.subchannels
    self.subchannels = endpoints.map { endpoint in
      // Connections were verified for the name that the endpoint had.
      if let known = old[endpoint.identity], known.endpoint.serverName == endpoint.serverName {
        old[endpoint.identity] = nil
        known.update(endpoint, keepsConnection: isEager)
        return known
      }
      return self.makeSubchannel(endpoint, keepsConnection: isEager, nameResolution: resolution)
    }
    // In list order, so that the calls that wait for these subchannels keep their order.
    for subchannel in before where old[subchannel.endpoint.identity] != nil { self.retire(subchannel) }
    let tracker = self.policy.countsCalls ? self.tracker : nil
    self.tracker.takesReportsOfCalls = self.policy.outOfBandPeriod == nil
    let service =
      self.environment.configuration.healthCheckedService ?? self.serviceConfig?.healthCheckServiceName
    let connections = self.maximumHTTP2Connections
    for subchannel in self.subchannels {
      subchannel.run(subchannel.pool.allow(http2Connections: connections))
      subchannel.tracker = tracker
      subchannel.watches.watchHealth(of: self.policy.usesHealth ? service : nil)
      subchannel.watches.watchLoad(every: self.policy.outOfBandPeriod)
    }
    if service != nil, !self.policy.usesHealth, !self.hasWarnedOfHealth {
      self.hasWarnedOfHealth = true
      self.environment.logger.warning(
        "health is not checked: pick_first has one endpoint; choose another policy, such as roundRobin",
        metadata: ["origin": "\(self.origin)"]
      )
    }
  }

  private func makeSubchannel(
    _ endpoint: Endpoint,
    keepsConnection: Bool,
    nameResolution: Duration
  ) -> Subchannel {
    let slot = self.vacantSlots.popLast() ?? self.slots.count
    if slot == self.slots.count { self.slots.append(nil) }
    self.generation += 1
    let subchannel = Subchannel(
      EndpointID(slot: slot, generation: self.generation),
      endpoint,
      in: self.environment,
      of: self,
      nameResolution: nameResolution,
      keepsConnection: keepsConnection,
      seed: self.random.next()
    )
    if self.isClosingWhenIdle { subchannel.closeWhenIdle() }
    self.slots[slot] = subchannel
    return subchannel
  }

  func retire(_ subchannel: Subchannel) {
    self.slots[subchannel.id.slot] = nil
    self.vacantSlots.append(subchannel.id.slot)
    self.retired[ObjectIdentifier(subchannel)] = subchannel
    subchannel.retire()
  }
}
