package import Connect
internal import Logging
internal import Synchronization

/// The way to one origin: finds its endpoints, keeps connections to those that its balancer wants, and gives each call one of
/// them.
///
/// ```
/// call ──► picker ──► subchannel ──► pool ──► connection
///            ▲            ▲
///         balancer ◄── states
///            ▲
///         resolver
/// ```
///
/// `@unchecked Sendable`: all that changes is touched on `executor` alone, where `startStream` is called by contract, and
/// subchannels, timers and resolvers call back. The functions for other threads hop first. `published` is behind a mutex.
package final class OriginChannel: RuledEndpoint, @unchecked Sendable {
  package let origin: Origin
  package let executor: any CallExecutor
  package let maximumHeaderListSize: Int
  let environment: ChannelEnvironment
  let resolution: ChannelResolution
  let rules: ChannelRules
  let endpoints: ChannelEndpoints
  let waiting: WaitingCalls
  /// Nil without routes, once no call of earlier routes is left.
  // Each call reads it, so exclusivity is not checked at run time. That is safe: nothing is called while it changes.
  @exclusivity(unchecked) var clusters: ChannelClusters?
  private let published = Mutex(ChannelStates())
  private var idleTimer: (any CallTimer)?
  /// Set when the channel leaves idleness. `init` does not ask the executor, which may be user code, for the time: transports
  /// make channels under a lock.
  private var lastUse = Duration.zero
  private(set) var isClosingWhenIdle = false
  private(set) var isShutDown = false
  private var isFinished = false
  private var onFinish: [@Sendable () -> Void] = []
  /// Called when the channel becomes idle, after a long time without calls.
  private let onIdle: @Sendable (OriginChannel) -> Void

  package init(
    _ environment: ChannelEnvironment,
    onIdle: @escaping @Sendable (OriginChannel) -> Void = { _ in }
  ) {
    self.environment = environment
    self.origin = environment.origin
    self.executor = environment.executor
    self.maximumHeaderListSize = environment.maximumHeaderListSize
    self.resolution = ChannelResolution(in: environment)
    self.rules = ChannelRules(in: environment)
    self.endpoints = ChannelEndpoints(in: environment)
    self.waiting = WaitingCalls(in: environment)
    self.onIdle = onIdle
    self.resolution.channel = self
    self.endpoints.channel = self
    self.waiting.channel = self
  }

  deinit {
    guard self.resolution.isActive else { return }
    let rest = Confined((self.resolution, self.endpoints, self.idleTimer), to: self.executor)
    self.executor.execute {
      let (resolution, endpoints, timer) = rest.value
      resolution.stop()
      timer?.cancel()
      endpoints.removeAll()
    }
  }

  /// For further channels to the same origin.
  package var shared: SharedOrigin { self.environment.shared }

  // MARK: - Calls

  package func startStream(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream {
    assert(self.executor.isCurrent, "streams start on the channel's executor")
    if let single = self.endpoints.single, let stream = single.start(request, handler) { return stream }
    if let member = self.clusters?.known.member(for: request) {
      if let single = member.endpoints.single, let stream = single.start(request, handler) { return stream }
      if !member.endpoints.subchannels.list.isEmpty {
        return member.endpoints.start(request, handler) {
          member.channel.wait(request, handler, $0, seed: $1)
        }
      }
    }
    if self.clusters != nil, let stream = ChannelRoutes(self).start(request, handler) { return stream }
    return self.endpoints.start(request, handler) { self.wait(request, handler, $0, seed: $1) }
  }

  /// Has a call wait, or fail soon, that could not be started.
  ///
  /// - Parameter choice: What the picker has said of it.
  private func wait(
    _ request: HTTPStreamRequest,
    _ handler: any HTTPStreamHandler,
    _ choice: ChannelEndpoints.Choice,
    seed: UInt64
  ) -> any HTTPStream {
    let stream = WaitingStream(
      request,
      handler: handler,
      seed: seed,
      since: self.executor.now,
      channel: self
    )
    if self.isShutDown {
      self.executor.later { stream.fail(.clientShutDown) }
    } else {
      self.exitIdle()
      if let error = self.put(stream, choice) { self.executor.later { stream.fail(error) } }
    }
    return stream
  }

  /// Starts a call on a connection, or has it wait for one.
  ///
  /// - Returns: Why neither is possible.
  func put(_ stream: WaitingStream, _ choice: ChannelEndpoints.Choice) -> ConnectError? {
    switch choice {
    case .start(let slot, let additions):
      stream.additions = additions
      if slot.subchannel.start(stream) { return nil }
      stream.queuedCall = (additions?.counting?.statistics.inFlight).map(QueuedCall.init)
      return slot.subchannel.pool.enqueue(stream)
    case .drop(let error):
      return error
    case .fail(let error) where !stream.request.waits(after: error):
      return error
    case .wait, .fail:
      break
    }
    if let error = self.waiting.refusal(beside: self.waiting.count) { return error }
    self.waiting.append(stream)
    if !stream.wasTakenBack {
      self.waiting.hasNew = true
      self.endpoints.subchannels.connectResting()
    }
    // While closing, only waiting calls cause new connections.
    if self.isClosingWhenIdle { self.endpoints.needsUpdate() }
    return nil
  }

  /// Picks again for the calls that wait.
  func placeWaiting() {
    self.waiting.forEach { stream in
      let choice = self.endpoints.pick(stream.request, seed: stream.seed, isNew: !stream.wasTakenBack)
      if let error = self.put(stream, choice) { stream.fail(error) }
    }
    self.waitingDidChange()
  }

  // MARK: - RuledEndpoint

  package var serviceRules: ServiceRules { self.rules.serviceRules }

  package func callsWaitForRules(_ count: Int) -> ConnectError? {
    if self.isShutDown { return .clientShutDown }
    if let error = self.waiting.refusal(beside: count - 1) { return error }
    self.exitIdle()
    return nil
  }

  // MARK: - States

  /// The state at this moment. May be read from any thread.
  package var connectivity: ConnectivityState { self.published.withLock { $0.state } }

  /// The state now, and each one that follows; states that nobody has taken are replaced by later ones.
  package func connectivityChanges() -> AsyncStream<ConnectivityState> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: ConnectivityState.self,
      bufferingPolicy: .bufferingNewest(16)
    )
    let number = self.published.withLock { $0.add(continuation) }
    // A listener retains the channel, so that the next call uses this channel.
    continuation.onTermination = { _ in self.published.withLock { $0.remove(number) } }
    return stream
  }

  func publish(_ state: ConnectivityState) {
    guard state != self.connectivity else { return }
    self.environment.logger.debug(
      "channel is \(state)",
      metadata: ["origin": "\(self.origin)", "endpoints": "\(self.endpoints.subchannels.list.count)"]
    )
    let listeners = self.published.withLock { $0.publish(state) }
    // Observers hear of the origin's state, which those of its clusters make up.
    if self.environment.cluster == nil { self.environment.report(.stateChanged(state)) }
    for listener in listeners { listener.finish() }
    self.environment.onStateChange?()
  }

  /// What the channel does now. May be called from any thread.
  package func snapshot() async -> ChannelSnapshot {
    await withCheckedContinuation { continuation in
      self.executor.execute { continuation.resume(returning: ChannelSnapshot(self)) }
    }
  }

  // MARK: - Idleness

  /// Connects, or begins to look for endpoints, without a call. May be called from any thread.
  package func connect() {
    self.executor.execute {
      guard !self.isShutDown else { return }
      self.exitIdle()
      if let clusters = self.clusters, clusters.areRouted {
        clusters.connect()
      } else {
        self.endpoints.connect()
      }
    }
  }

  /// Begins to look for endpoints, unless that is going on.
  func exitIdle() {
    guard !self.isShutDown, self.resolution.start() else { return }
    self.lastUse = self.executor.now
    self.scheduleIdleCheck(after: self.environment.configuration.idleTimeout)
    // Last, since an observer may start a call.
    if self.connectivity == .idle { self.publish(.connecting) }
  }

  private func scheduleIdleCheck(after delay: Duration) {
    self.idleTimer.take()?.cancel()
    // Tests in virtual time would see a timer, however late it is due.
    guard delay < .longest else { return }
    self.idleTimer = self.executor.schedule(after: max(delay.clamped, .milliseconds(1)), with: self) {
      $0.checkIdle()
    }
  }

  private func checkIdle() {
    let timeout = max(self.environment.configuration.idleTimeout.clamped, .milliseconds(1))
    let subchannels = self.endpoints.subchannels
    if !self.waiting.isEmpty || self.serviceRules.waitingCount > 0 || subchannels.haveCalls
      || self.clusters?.table.haveCalls == true
    {
      self.lastUse = self.executor.now
    }
    let ownUse = subchannels.list.reduce(self.lastUse) { max($0, $1.pool.lastUse) }
    // Kept, since endpoints and clusters may go.
    self.lastUse = max(ownUse, self.clusters?.lastUse ?? .zero)
    let remaining = timeout - (self.executor.now - self.lastUse)
    if remaining > .zero {
      self.scheduleIdleCheck(after: remaining)
    } else {
      self.enterIdle()
    }
  }

  /// Forgets the endpoints and closes their connections. The next call looks for them again.
  func enterIdle() {
    self.stop()
    if let clusters = self.clusters {
      clusters.enterIdle()
      self.rules.leaveRoutes()
    }
    if !self.isShutDown { self.rules.expectUpdate() }
    self.publish(.idle)
    self.onIdle(self)
  }

  private func stop() {
    self.resolution.stop()
    self.idleTimer.take()?.cancel()
    self.endpoints.removeAll()
  }

  // MARK: - The end

  /// Closes connections as soon as they have no streams. May be called from any thread.
  package func closeWhenIdle() {
    self.executor.execute {
      self.isClosingWhenIdle = true
      self.clusters?.closeWhenIdle()
      for listener in self.published.withLock({ $0.takeListeners() }) { listener.finish() }
      for subchannel in self.endpoints.subchannels.list { subchannel.pool.update { $0.closeWhenIdle() } }
    }
  }

  /// Lets calls finish, and after `limit` fails those that are left. May be called from any thread, and again with
  /// another limit; the earliest end counts.
  ///
  /// - Parameters:
  ///   - limit: Nil for no limit.
  ///   - done: Called once nothing is left.
  package func shutDown(within limit: Duration?, _ done: @escaping @Sendable () -> Void) {
    self.executor.execute {
      if self.isFinished {
        done()
        return
      }
      self.onFinish.append(done)
      // Calls that wait for rules then wait for a connection, and may finish.
      self.serviceRules.stopExpecting()
      self.isShutDown = true
      self.endpoints.areClosed = true
      if let clusters = self.clusters { clusters.shutDown(within: limit) }
      self.waitingDidChange()
      guard let limit else { return }
      _ = self.executor.schedule(after: limit.clamped, with: self) { $0.forceShutDown() }
    }
  }

  /// While shutting down: once no call waits, everything is closed.
  func waitingDidChange() {
    guard self.isShutDown, !self.isFinished, self.waiting.isEmpty,
      self.endpoints.subchannels.waitingCount == 0
    else { return }
    // An answer would bring new clusters, which nothing would end.
    self.resolution.stop()
    if let clusters = self.clusters, !clusters.isForced, !clusters.table.isEmpty { return }
    self.stop()
    self.publish(.shutdown)
    self.finishIfNothingIsLeft()
  }

  private func forceShutDown() {
    guard !self.isFinished else { return }
    let error = ConnectError(
      code: .unavailable,
      message: "the HTTP client was shut down before the call had finished"
    )
    var waiting = self.waiting.takeAll()
    for subchannel in self.endpoints.subchannels.list { waiting += subchannel.pool.state.takeWaiting() }
    for stream in waiting { stream.fail(error) }
    if let clusters = self.clusters {
      // Some may have come since the shutdown began.
      clusters.shutDown(within: .zero)
      clusters.isForced = true
    }
    // Retires all subchannels.
    self.waitingDidChange()
    for subchannel in Array(self.endpoints.subchannels.retired.values) {
      subchannel.pool.update { $0.forceShutDown(error) }
    }
  }

  func finishIfNothingIsLeft() {
    guard self.isShutDown, self.connectivity == .shutdown, self.endpoints.subchannels.retired.isEmpty,
      !self.isFinished, self.clusters?.table.isEmpty ?? true
    else { return }
    self.isFinished = true
    let callbacks = self.onFinish
    self.onFinish = []
    for callback in callbacks { callback() }
  }
}
