internal import Connect
internal import ConnectChannels
internal import ConnectInterceptors
internal import ConnectSimulation
internal import ConnectTesting

extension Scenario {
  func makeClient(in cluster: SimulatedCluster, _ ledger: Ledger) -> ProtocolClient {
    var channel = ChannelConfiguration(balancing: self.balancing)
    channel.maximumConnectionAge = self.maximumConnectionAge
    channel.idleTimeout = self.channelIdleTimeout
    channel.healthCheckedService = self.checksHealth ? "" : nil
    var config = ProtocolClientConfig(
      host: "https://explorer.internal:443",
      networkProtocol: self.networkProtocol,
      codec: self.usesJSON ? JSONCodec() : ProtoCodec(),
      interceptors: self.makeInterceptors(in: cluster, ledger),
      timeout: self.timeout,
      unaryGET: .alwaysEnabled,
      waitForReady: self.waitForReady
    )
    if let hedges = self.hedges {
      config.hedging = { _ in
        HedgingPolicy(maximumAttempts: hedges, delay: .milliseconds(20), allowsSideEffects: true)
      }
    }
    return ProtocolClient(httpClient: cluster.httpClient(channel), config: config)
  }

  /// Makes the interceptors, in an order that the seed decides.
  private func makeInterceptors(in cluster: SimulatedCluster, _ ledger: Ledger) -> [InterceptorFactory] {
    var factories: [InterceptorFactory] = []
    for _ in 0..<self.passThrough { factories.append { _ in PassingInterceptor() } }
    for _ in 0..<self.asyncPassThrough { factories.append { _ in PassingAsyncInterceptor() } }
    if let attempts = self.attempts {
      var policy = RetryPolicy(maximumAttempts: attempts, methods: { _ in true })
      policy.random = cluster.chance
      let chosen = policy
      let budget = RetryBudget(maximumTokens: self.hasBudget ? 10 : 1_000_000)
      factories.append { _ in RetryInterceptor(policy: chosen, budget: budget) }
    }
    if let lifetime = self.cacheLifetime {
      let cache = ResponseCache(
        configuration: .init(
          policy: self.prefersNetwork ? .networkFirst : .cacheFirst,
          timeToLive: lifetime,
          sharesResponsesBetweenUsers: true
        ),
        clock: cluster.clock
      )
      factories.append { _ in CacheReadInterceptor(cache) }
      factories.append { _ in CacheWriteInterceptor(cache) }
    }
    if let lifetime = self.tokenLifetime {
      let credentials = self.makeCredentials(lifetime, cluster.clock, ledger)
      factories.append { _ in CredentialsInterceptor(credentials) }
    }
    if self.hasBreaker {
      let breaker = CircuitBreaker(
        .init(minimumCalls: 5, openDuration: .seconds(1)),
        clock: cluster.clock
      )
      factories.append { _ in CircuitBreakerInterceptor(breaker) }
    }
    if let bound = self.callBound {
      let limiter = ConcurrencyLimiter(
        maximumCalls: bound.calls,
        maximumWaiting: bound.waiting,
        maximumWait: bound.wait,
        clock: cluster.clock
      )
      factories.append { _ in ConcurrencyLimitInterceptor(limiter) }
    }
    if self.hasAdapter {
      let clock = cluster.clock
      let adapter = Adapter { request, _ in
        try await clock.sleep(for: .milliseconds(3))
        return request
      }
      factories.append { _ in RequestInterceptor(adapters: [adapter]) }
    }
    var random = SeededRandom(seed: self.seed)
    for index in factories.indices.dropFirst().reversed() {
      factories.swapAt(index, random.index(below: index + 1))
    }
    return factories
  }

  private func makeCredentials(_ lifetime: Duration, _ clock: VirtualClock, _ ledger: Ledger) -> Credentials {
    Credentials(for: ["explorer.internal"], clock: clock) { _ in
      try await clock.sleep(for: .milliseconds(40))
      return AccessToken("\(ledger.validToken)", expiresIn: lifetime)
    }
  }
}
