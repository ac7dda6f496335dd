internal import Connect
internal import ConnectChannels
internal import Logging

/// One server, and the ADS stream to it, which is made again after its end. Confined to the client's executor.
///
/// It has a stream as long as resources are asked for.
final class ControlPlane {
  /// After this time a resource that was asked for does not exist (gRFC A57).
  static let patience = Duration.seconds(15)

  let server: XDSBootstrap.Server
  /// Why the server cannot be reached; nil while it can, or if that is not known yet.
  private(set) var failure: ConnectError?
  /// The versions that were accepted last. They outlive streams.
  var versions: [ResourceType: String] = [:]

  private let environment: DiscoveryEnvironment
  private weak var client: DiscoveryClient?
  private var keys: Set<ResourceKey> = []
  private var stream: DiscoveryStream?
  private var call: (any DiscoveryCall)?
  /// Tells the events of the current stream from those of earlier ones.
  private var streamNumber: UInt64 = 0
  private var hasStarted = false
  private var isFlushScheduled = false
  /// A request was taken by the transport before the stream had a connection.
  private var hasUnsentRequest = false
  private var backoff = ConnectionBackoff()
  private var retry: (any CallTimer)?
  private var timers: [UInt64: any CallTimer] = [:]
  private var lastTimer: UInt64 = 0

  init(_ server: XDSBootstrap.Server, _ environment: DiscoveryEnvironment, client: DiscoveryClient) {
    self.server = server
    self.environment = environment
    self.client = client
  }

  // MARK: - For the client

  func subscribe(to key: ResourceKey) {
    guard self.keys.insert(key).inserted else { return }
    self.stream?.subscribe(to: key)
    self.flushLater()
  }

  func unsubscribe(from key: ResourceKey) {
    guard self.keys.remove(key) != nil else { return }
    self.stream?.unsubscribe(from: key)
    self.flushLater()
  }

  func hasRequested(_ type: ResourceType) -> Bool { self.stream?.hasRequested(type) ?? false }

  func settle(_ key: ResourceKey) { self.stream?.settle(key) }

  /// The response was used.
  func acknowledge(_ type: ResourceType, nonce: String, problem: String?) {
    self.failure = nil
    self.stream?.acknowledge(type, nonce: nonce, problem: problem)
    self.flushLater()
  }

  /// Ends the stream. Nothing follows.
  func close() {
    self.streamNumber += 1
    self.keys = []
    self.retry.take()?.cancel()
    self.endStream()?.cancel()
  }

  // MARK: - The stream

  /// Says what has changed, once the current work is done: interest often goes and comes again within it.
  private func flushLater() {
    guard !self.isFlushScheduled else { return }
    self.isFlushScheduled = true
    self.environment.executor.execute(with: self) { $0.flush() }
  }

  private func flush() {
    self.isFlushScheduled = false
    guard !self.keys.isEmpty else {
      self.close()
      self.client?.isUnused(self)
      return
    }
    if self.stream == nil {
      if self.retry == nil { self.start() }
    } else {
      self.sendNext()
    }
  }

  private func start() {
    self.streamNumber += 1
    self.hasStarted = false
    self.hasUnsentRequest = false
    self.stream = DiscoveryStream(self.keys)
    let number = self.streamNumber
    let executor = self.environment.executor
    let here = Confined(Weak(self), to: executor)
    self.call = self.environment.transport.open(to: self.server) { event in
      executor.execute { here.value.object?.received(event, in: number) }
    }
    self.sendNext()
  }

  private func sendNext() {
    guard let call = self.call,
      let request = self.stream?.nextRequest(versions: self.versions, node: self.environment.node)
    else { return }
    let number = self.streamNumber
    let executor = self.environment.executor
    let here = Confined(Weak(self), to: executor)
    call.send(request) { isSent in
      guard isSent else { return }
      executor.execute { here.value.object?.requestWasTaken(in: number) }
    }
  }

  private func requestWasTaken(in number: UInt64) {
    guard number == self.streamNumber, self.stream != nil else { return }
    // A request that waits for a connection is not due yet: connecting may take longer than the server has for an answer.
    guard self.hasStarted else {
      self.hasUnsentRequest = true
      return
    }
    let awaited = self.stream?.requestDidGoOut() ?? []
    self.await(awaited.filter { self.client?.lacks($0.key) ?? false })
    self.sendNext()
  }

  private func await(_ subscriptions: [DiscoveryStream.Subscription]) {
    guard !subscriptions.isEmpty else { return }
    self.lastTimer += 1
    let timer = self.lastTimer
    self.timers[timer] = self.environment.executor.schedule(after: Self.patience, with: self) { plane in
      plane.timers[timer] = nil
      let missing = subscriptions.filter { plane.stream?.expire($0) ?? false }
      plane.client?.isMissing(missing.map(\.key), at: plane)
    }
  }

  private func received(_ event: DiscoveryEvent, in number: UInt64) {
    guard number == self.streamNumber, self.stream != nil else { return }
    switch event {
    case .started:
      self.didStart()
    case .response(let response):
      self.didStart()
      self.client?.received(response, from: self)
      // After what the watchers do with it, which was scheduled before.
      self.environment.executor.execute(with: self) { plane in
        if number == plane.streamNumber { plane.call?.requestNext() }
      }
    case .ended(let error):
      self.ended(error)
    }
  }

  private func didStart() {
    self.hasStarted = true
    guard self.hasUnsentRequest else { return }
    self.hasUnsentRequest = false
    self.requestWasTaken(in: self.streamNumber)
  }

  private func endStream() -> (any DiscoveryCall)? {
    for timer in self.timers.values { timer.cancel() }
    self.timers = [:]
    self.stream = nil
    return self.call.take()
  }

  private func ended(_ error: ConnectError) {
    let hasResponded = self.stream?.hasResponded ?? false
    _ = self.endStream()
    if hasResponded { self.backoff.reset() }
    let delay = self.backoff.next(random: &self.environment.random)
    self.retry = self.environment.executor.schedule(after: delay, with: self) { plane in
      plane.retry = nil
      plane.flush()
    }
    self.environment.logger.info(
      "the ADS stream to \(self.server.uri) has ended, and starts again after \(delay): \(error)"
    )
    guard !hasResponded else { return }
    let failure = ConnectError(
      code: .unavailable,
      message: "the control plane \(self.server.uri) cannot be used: its stream ended before any response: \(error)",
      exception: error
    )
    self.failure = failure
    self.client?.cannotReach(self, failure)
  }
}

/// What the parts of a client share. Confined to its executor.
final class DiscoveryEnvironment {
  let executor: any CallExecutor
  let transport: any DiscoveryTransport
  let node: Envoy_Config_Core_V3_Node
  let logger: Logger
  var random: SeededRandom

  init(
    executor: any CallExecutor,
    transport: any DiscoveryTransport,
    node: Envoy_Config_Core_V3_Node,
    logger: Logger,
    random: SeededRandom
  ) {
    self.executor = executor
    self.transport = transport
    self.node = node
    self.logger = logger
    self.random = random
  }
}
