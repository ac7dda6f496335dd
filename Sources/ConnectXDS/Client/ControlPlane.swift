internal import Connect
internal import ConnectChannels
internal import Logging

/// One server, and the ADS stream to it, which is made again after its end. Confined to the client's executor.
///
/// It has a stream as long as resources are asked for.
final class ControlPlane {
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
  private var isFlushScheduled = false
  private var backoff = ConnectionBackoff()
  private var retry: (any CallTimer)?
  private let timers: AnswerTimers

  init(_ server: XDSBootstrap.Server, _ environment: DiscoveryEnvironment, client: DiscoveryClient) {
    self.server = server
    self.environment = environment
    self.client = client
    self.timers = AnswerTimers(on: environment.executor)
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

  /// Whether the resource is asked of this server.
  func asks(for key: ResourceKey) -> Bool { self.keys.contains(key) }

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
    self.await(self.stream?.requestWasTaken() ?? [])
  }

  private func await(_ subscriptions: [DiscoveryStream.Subscription]) {
    // A server need not send again what the client has.
    let subscriptions = subscriptions.filter { self.client?.lacks($0.key) ?? false }
    if !subscriptions.isEmpty {
      self.timers.begin { [weak self] in self?.expire(subscriptions) }
    }
    self.sendNext()
  }

  private func expire(_ subscriptions: [DiscoveryStream.Subscription]) {
    let missing = subscriptions.filter { self.stream?.expire($0) ?? false }
    self.client?.isMissing(missing.map(\.key), at: self)
  }

  private func received(_ event: DiscoveryEvent, in number: UInt64) {
    guard number == self.streamNumber, self.stream != nil else { return }
    switch event {
    case .started:
      self.await(self.stream?.didStart() ?? [])
    case .response(let response):
      self.await(self.stream?.didStart() ?? [])
      if let client = self.client { ResponseReader.use(response, of: self, for: client) }
      // After what the watchers do with it, which was scheduled before.
      self.environment.executor.execute(with: self) { plane in
        if number == plane.streamNumber { plane.call?.requestNext() }
      }
    case .ended(let error):
      self.ended(error)
    }
  }

  private func endStream() -> (any DiscoveryCall)? {
    self.timers.cancel()
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
      message:
        "the control plane \(self.server.uri) cannot be used: its stream ended before any response: \(error)",
      exception: error
    )
    self.failure = failure
    self.client?.cannotReach(self, failure)
  }
}

/// The times after which resources that were asked for do not exist. Confined to an executor.
final class AnswerTimers {
  /// How long a server may take (gRFC A57).
  static let patience = Duration.seconds(15)

  private let executor: any CallExecutor
  private var timers: [UInt64: any CallTimer] = [:]
  private var last: UInt64 = 0

  init(on executor: any CallExecutor) {
    self.executor = executor
  }

  /// Runs `work` after the time, unless all are cancelled.
  func begin(_ work: @escaping () -> Void) {
    self.last += 1
    let number = self.last
    let work = Confined(work, to: self.executor)
    self.timers[number] = self.executor.schedule(after: Self.patience, with: self) { timers in
      timers.timers[number] = nil
      work.value()
    }
  }

  func cancel() {
    for timer in self.timers.values { timer.cancel() }
    self.timers = [:]
  }
}
