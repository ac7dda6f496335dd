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
package final class OriginChannel: HTTPEndpoint, WaitingRoom, @unchecked Sendable {
  package let origin: Origin
  package let executor: any CallExecutor
  package let maximumHeaderListSize: Int
  let environment: ChannelEnvironment

  // Names.
  var watch: (any ResolverWatch)?
  /// Distinguishes answers of this watch from those of earlier watches.
  var watchNumber = 0
  var resolutionStart = Duration.zero
  var resolutionTimer: (any CallTimer)?
  /// The resolver's last good answer.
  var lastGood: ResolverUpdate?
  var serviceConfig: ServiceConfig?
  /// What `serviceConfig` says of calls.
  package let serviceRules: ServiceRules
  /// The throttle of the current service config. Kept, so that its tokens survive.
  var throttle: RetryThrottle?
  /// The last service config that could not be used.
  var refusedServiceConfig: String?
  var lastResolutionRequest: Duration?
  var hasWarnedOfHealth = false
  var resolverUpdates = 0
  /// Why nothing is known of the name's endpoints.
  var resolutionError: ConnectError?

  // Endpoints.
  var policy: BalancingPolicy
  var balancer: (any LoadBalancer)?
  var random: SplitMix64
  let tracker: CallTracker
  /// In the order of the balancer's list.
  var subchannels: [Subchannel] = []
  /// By slot; nil if the slot is vacant.
  var slots: [Subchannel?] = []
  var vacantSlots: [Int] = []
  var generation: UInt32 = 0
  /// Subchannels that have left the list and still have streams.
  var retired: [ObjectIdentifier: Subchannel] = [:]
  var isUpdatePending = false
  var updateTimer: (any CallTimer)?
  /// Whether outlier detection counts the calls of the endpoints.
  var isJudged = false
  var wantsConnection = false

  // Calls.
  /// Nil while the channel is idle or knows no endpoint.
  var picker: (any Picker)?
  /// The endpoint of all calls, if the picker says so.
  private var single: Subchannel?
  var waiting = WaitingQueue<WaitingStream>()
  /// Whether calls wait since the last update that have lost no connection yet.
  private var hasNewWaiting = false

  // Life.
  private(set) var state = ConnectivityState.idle
  let published = Mutex(ChannelStates())
  var idleTimer: (any CallTimer)?
  /// Set when the channel leaves idleness. `init` does not ask the executor, which may be user code, for the time: transports
  /// make channels under a lock.
  var lastUse = Duration.zero
  var isClosingWhenIdle = false
  var isShutDown = false
  var isFinished = false
  var onFinish: [@Sendable () -> Void] = []
  /// Called when the channel becomes idle, after a long time without calls.
  let onIdle: @Sendable (OriginChannel) -> Void

  package init(
    _ environment: ChannelEnvironment,
    onIdle: @escaping @Sendable (OriginChannel) -> Void = { _ in }
  ) {
    self.environment = environment
    self.origin = environment.origin
    self.executor = environment.executor
    self.maximumHeaderListSize = environment.maximumHeaderListSize
    self.random = SplitMix64(seed: environment.seed)
    self.policy = environment.configuration.balancing ?? .pickFirst
    self.serviceConfig = environment.configuration.serviceConfig
    self.serviceRules = ServiceRules()
    self.tracker = CallTracker(on: environment.executor)
    self.onIdle = onIdle
    self.publishRules()
    if self.mayFindRules { self.serviceRules.expectUpdate() }
  }

  deinit {
    let timers = [self.idleTimer, self.resolutionTimer, self.updateTimer]
    let rest = Confined((self.watch, self.subchannels, timers), to: self.executor)
    self.executor.execute {
      let (watch, subchannels, timers) = rest.value
      watch?.cancel()
      for timer in timers { timer?.cancel() }
      for subchannel in subchannels { subchannel.retire() }
    }
  }

  /// For further channels to the same origin.
  package var shared: SharedOrigin { self.environment.shared }

  // MARK: - Calls

  package func startStream(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream {
    assert(self.executor.isCurrent, "streams start on the channel's executor")
    if let single = self.single, let stream = single.start(request, handler) { return stream }
    return self.startSlowly(request, handler)
  }

  private func startSlowly(_ request: HTTPStreamRequest, _ handler: any HTTPStreamHandler) -> any HTTPStream {
    let seed = self.random.next()
    let place: Place = self.isShutDown ? .fail(.clientShutDown) : self.pick(request, seed: seed)
    if case .start(let subchannel) = place, let stream = subchannel.start(request, handler) { return stream }
    let stream = WaitingStream(request, handler: handler, seed: seed, channel: self)
    if self.isShutDown {
      self.later { stream.fail(.clientShutDown) }
    } else {
      self.exitIdle()
      if let error = self.put(stream, in: place) { self.later { stream.fail(error) } }
    }
    return stream
  }

  /// Finds a place for a call: on a connection, or where it waits for one.
  ///
  /// - Returns: Why there is none.
  func place(_ stream: WaitingStream) -> ConnectError? {
    self.put(stream, in: self.pick(stream.request, seed: stream.seed, isNew: !stream.wasTakenBack))
  }

  private func put(_ stream: WaitingStream, in place: Place) -> ConnectError? {
    switch place {
    case .start(let subchannel):
      return subchannel.start(stream) ? nil : subchannel.enqueue(stream)
    case .wait:
      return self.enqueue(stream)
    case .fail(let error):
      return stream.request.waits(after: error) ? self.enqueue(stream) : error
    }
  }

  private func enqueue(_ stream: WaitingStream) -> ConnectError? {
    guard self.waiting.count < self.maximumWaiting else {
      return self.tooManyWait(self.waiting.count)
    }
    stream.queued(in: self, as: self.waiting.append(stream))
    if !stream.wasTakenBack {
      self.hasNewWaiting = true
      for subchannel in self.subchannels where subchannel.race.isResting {
        subchannel.connect(isForCall: true)
      }
    }
    // While closing, only waiting calls cause new connections.
    if self.isClosingWhenIdle { self.needsUpdate() }
    return nil
  }

  func tooManyWait(_ count: Int) -> ConnectError {
    .tooManyWait(count, for: self.origin.description, limit: self.environment.limits.waitingCalls)
  }

  /// How many calls may wait, including those for which a connection will be opened.
  var maximumWaiting: Int {
    let limits = self.environment.limits
    let expected = self.environment.version == .http1 ? limits.http1Connections : 100
    let (sum, overflow) = limits.waitingCalls.addingReportingOverflow(expected)
    return overflow ? .max : sum
  }

  func leave(_ ticket: WaitingStream.Ticket) {
    _ = self.waiting.remove(ticket)
    self.waitingDidChange()
  }

  /// Takes back calls that waited for a connection to an endpoint that is lost.
  func takeBack(_ streams: [WaitingStream]) {
    for stream in streams {
      stream.wasTakenBack = true
      stream.queued(in: self, as: self.waiting.append(stream))
    }
    self.exitIdle()
    self.needsUpdate()
  }

  func later(_ work: @escaping () -> Void) {
    let work = Confined(work, to: self.executor)
    self.executor.execute { work.value() }
  }

  // MARK: - Picks

  enum Place {
    case start(Subchannel)
    case wait
    case fail(ConnectError)
  }

  /// - Parameter isNew: Whether the call has lost no connection yet. Otherwise it waits for the backoff, too.
  private func pick(_ request: HTTPStreamRequest, seed: UInt64, isNew: Bool = true) -> Place {
    guard let picker = self.picker else {
      return self.resolutionError.map { .fail($0) } ?? .wait
    }
    let context = PickContext(
      path: request.path,
      headers: RequestHeaders(headers: request.headers),
      seed: seed,
      hash: request.context[RoutingHash.self]
    )
    switch picker.pick(context) {
    case .endpoint(let id, let other):
      if let other { self.subchannel(other)?.connect(isForCall: isNew) }
      // A picker may be older than the last change.
      guard let subchannel = self.subchannel(id), subchannel.takesCalls else { return .wait }
      return .start(subchannel)
    case .wait:
      return .wait
    case .connect(let id):
      self.subchannel(id)?.connect(isForCall: isNew)
      return .wait
    case .fail(let reason):
      return .fail(self.error(reason))
    }
  }

  func subchannel(_ id: EndpointID) -> Subchannel? {
    guard id.slot < self.slots.count, let subchannel = self.slots[id.slot], subchannel.id == id else {
      return nil
    }
    return subchannel
  }

  private func error(_ reason: String) -> ConnectError {
    if self.subchannels.count == 1, let error = self.subchannels[0].error { return error }
    var error = ConnectError(code: .unavailable, message: "cannot reach \(self.origin): \(reason)")
    let causes = self.subchannels.map(\.error)
    if causes.contains(where: { $0?.isVersionMismatch == true }) { error.unnamed = .version }
    error.isFinal = !causes.isEmpty && causes.allSatisfy { $0?.isFinal == true }
    return error
  }

  // MARK: - Balancing

  /// The balancer should know of a change. One update covers all changes of this turn.
  func needsUpdate() {
    guard !self.isUpdatePending else { return }
    self.isUpdatePending = true
    self.executor.execute { [weak self] in self?.update() }
  }

  func update() {
    self.isUpdatePending = false
    guard var balancer = self.balancer else { return }
    var context = BalancerContext(
      now: self.executor.now,
      random: self.random,
      loads: self.tracker.loads,
      wantsConnection: self.wantsConnection
    )
    let decision = balancer.update(self.subchannels.map(\.balanced), in: &context)
    self.balancer = balancer
    self.random = context.random
    self.wantsConnection = false
    self.picker = decision.picker
    self.single = self.single(of: decision.picker)
    self.publish(decision.state)
    self.updateTimer?.cancel()
    self.updateTimer = decision.updateAfter.map { self.schedule(after: $0) { $0.update() } }
    if !self.isClosingWhenIdle || !self.waiting.isEmpty {
      for id in decision.connect { self.subchannel(id)?.connect(isForCall: self.hasNewWaiting) }
    }
    self.hasNewWaiting = false
    self.placeWaiting()
  }

  private func single(of picker: any Picker) -> Subchannel? {
    guard let picker = picker as? ConstantPicker, case .endpoint(let id, nil) = picker.result else {
      return nil
    }
    return self.subchannel(id)
  }

  /// Picks again for the calls that wait.
  private func placeWaiting() {
    if let picker = self.picker as? ConstantPicker, picker.result == .wait { return }
    for _ in 0..<self.waiting.count {
      guard let stream = self.waiting.popFirst() else { break }
      if let error = self.place(stream) { stream.fail(error) }
    }
    self.waitingDidChange()
  }

  /// No picker, since no endpoint is known.
  func forgetPicker() {
    self.picker = nil
    self.single = nil
    self.updateTimer?.cancel()
    self.updateTimer = nil
  }

  func publish(_ state: ConnectivityState) {
    guard state != self.state else { return }
    self.environment.logger.debug(
      "channel is \(state)",
      metadata: ["origin": "\(self.origin)", "endpoints": "\(self.subchannels.count)"]
    )
    self.state = state
    self.environment.report(.stateChanged(state))
    for listener in self.published.withLock({ $0.publish(state) }) { listener.finish() }
  }

  func schedule(
    after delay: Duration,
    _ work: @escaping @Sendable (OriginChannel) -> Void
  ) -> any CallTimer {
    self.executor.schedule(after: max(delay, .zero)) { [weak self] in
      if let self { work(self) }
    }
  }
}

/// What pickers see of a request's headers.
private struct RequestHeaders: PickHeaders {
  let headers: Headers

  func value(of name: String) -> String? {
    let values = self.headers[name]
    return values.isEmpty ? nil : values.joined(separator: ",")
  }
}

extension HTTPStreamRequest {
  /// The target without the query that a GET has.
  fileprivate var path: String {
    guard let query = self.target.utf8.firstIndex(of: UInt8(ascii: "?")) else { return self.target }
    return String(self.target[..<query])
  }
}
