import Connect
import ConnectTesting
import Logging
import NIOCore
import XCTest

@testable import ConnectChannels

/// Servers at addresses, without sockets: says what comes of attempts to connect, and keeps the connections.
///
/// `@unchecked Sendable`: used on the executor, and by the test while nothing runs there.
final class FakeNetwork: ConnectionOpener, @unchecked Sendable {
  enum Behaviour {
    /// Connections take so many streams.
    case accepts(HTTPConnectionInfo.Version = .http2, streams: Int = 100)
    case refuses
    /// Attempts fail with this error, which explains all.
    case fails(ConnectError)
    /// Attempts never end.
    case hangs
    /// Attempts fail after their time limit.
    case timesOut
  }

  let executor: VirtualExecutor
  /// By address, such as `10.0.0.1:80`.
  var behaviours: [String: Behaviour] = [:]
  var standard = Behaviour.accepts()
  /// Whether connections take calls before the server has answered, where the client allows it.
  var hasEarlyData = false
  /// Of all connections.
  var authorities: AuthorityCheck?
  /// How long it takes to accept or to refuse.
  var delay = Duration.zero
  /// All attempts, in their order.
  private(set) var attempts: [String] = []
  /// The clusters of all attempts, in their order.
  private(set) var clusters: [String?] = []
  private(set) var connections: [FakeConnection] = []
  /// Of all streams, in their order.
  fileprivate(set) var requests: [HTTPStreamRequest] = []
  /// Answers streams as soon as they start; nil to let them wait.
  var answer: ((FakeStream) -> Void)?

  init(_ executor: VirtualExecutor) {
    self.executor = executor
  }

  func open(_ attempt: PooledConnection) {
    let address = attempt.address.description
    self.attempts.append(address)
    self.clusters.append(attempt.cluster)
    let opening = Confined(attempt, to: self.executor)
    switch self.behaviours[address] ?? self.standard {
    case .hangs:
      break
    case .timesOut:
      _ = self.executor.schedule(after: attempt.timeLimit) {
        guard opening.value.isWanted else { return }
        opening.value.closed(ConnectError(code: .unavailable, message: "timed out"), reason: "timed out")
      }
    case .refuses:
      self.later {
        let error = ConnectError(code: .unavailable, message: "cannot connect (\(address): refused)")
        opening.value.closed(error, reason: "refused")
      }
    case .fails(let error):
      self.later { opening.value.closed(error) }
    case .accepts(let version, let streams):
      self.later {
        let attempt = opening.value
        guard attempt.isWanted else { return }
        let connection = FakeConnection(address, attempt, self)
        self.connections.append(connection)
        attempt.isEarly = self.hasEarlyData && attempt.mayBeEarly
        attempt.authorities = self.authorities
        attempt.established(connection, version: version)
        attempt.connection(connection, canServe: streams)
      }
    }
  }

  private func later(_ work: @escaping @Sendable () -> Void) {
    if self.delay == .zero {
      self.executor.execute(work)
    } else {
      _ = self.executor.schedule(after: self.delay, work)
    }
  }

  func open(at address: String) -> [FakeConnection] {
    self.connections.filter { $0.address == address && !$0.isClosed }
  }

  /// Requests keep what they hold alive.
  func forgetRequests() { self.requests = [] }

  /// How many streams each address has had.
  var counts: [String: Int] {
    self.connections.reduce(into: [:]) { $0[$1.address, default: 0] += $1.streamCount }
  }
}

final class FakeConnection: StreamConnection {
  let address: String
  let network: FakeNetwork
  private var delegate: (any StreamConnectionDelegate)?
  var streams: [FakeStream] = []
  private(set) var streamCount = 0
  private(set) var isDraining = false
  private(set) var hasServed = false
  var isClosed: Bool { self.delegate == nil }

  init(_ address: String, _ delegate: any StreamConnectionDelegate, _ network: FakeNetwork) {
    self.address = address
    self.delegate = delegate
    self.network = network
  }

  func startStream(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream {
    let stream = FakeStream(request, handler, self)
    self.streams.append(stream)
    self.streamCount += 1
    self.network.requests.append(request)
    if let answer = self.network.answer {
      let answering = Confined((stream, answer), to: self.network.executor)
      self.network.executor.execute {
        let (stream, answer) = answering.value
        if stream.handler != nil { answer(stream) }
      }
    }
    return stream
  }

  func drain() {
    self.isDraining = true
    self.closeIfFinished()
  }

  func close(failing error: ConnectError) {
    let closing = Confined(self, to: self.network.executor)
    self.network.executor.execute {
      for stream in closing.value.streams { stream.fail(error) }
      closing.value.delegate.take()?.connectionDidClose(closing.value, error: error)
    }
  }

  /// The server answers for the first time.
  func prove() { self.delegate?.connectionIsProven(self) }

  /// The server goes away in order.
  func goAway() {
    self.hasServed = self.hasServed || !self.streams.isEmpty
    self.isDraining = true
    self.delegate?.connectionWillClose(self)
    self.closeIfFinished()
  }

  /// The server dies.
  func die() {
    let error = ConnectError(code: .unavailable, message: "the connection was reset")
    self.delegate?.connectionWillClose(self)
    for stream in self.streams { stream.fail(error) }
    self.delegate.take()?.connectionDidClose(self, error: error)
  }

  /// Nothing comes from the server any more.
  func fallSilent() {
    self.delegate?.connectionIsUnfit(self, "silence")
    self.die()
  }

  fileprivate func received(_ headers: Headers) {
    self.hasServed = true
    self.delegate?.connectionIsFit(self)
    if headers.contains("alt-svc") { self.delegate?.connection(self, didReceiveAltSvc: headers) }
  }

  func suspect() { self.delegate?.connectionIsSuspect(self) }
  func isAlive() { self.delegate?.connectionIsAlive(self) }

  /// A response is complete.
  fileprivate func answered() { self.hasServed = true }

  fileprivate func ended(_ stream: FakeStream) {
    self.streams.removeAll { $0 === stream }
    let ending = Confined(self, to: self.network.executor)
    self.network.executor.execute {
      ending.value.delegate?.connectionDidCloseStream(ending.value)
      ending.value.closeIfFinished()
    }
  }

  private func closeIfFinished() {
    guard self.isDraining, self.streams.isEmpty else { return }
    let closing = Confined(self, to: self.network.executor)
    self.network.executor.execute {
      closing.value.delegate.take()?.connectionDidClose(closing.value, error: nil)
    }
  }
}

final class FakeStream: HTTPStream {
  let request: HTTPStreamRequest
  private(set) var handler: (any HTTPStreamHandler)?
  private let connection: FakeConnection
  private(set) var isCancelled = false

  init(_ request: HTTPStreamRequest, _ handler: any HTTPStreamHandler, _ connection: FakeConnection) {
    self.request = request
    self.handler = handler
    self.connection = connection
  }

  var address: String { self.connection.address }

  func respond(_ headers: Headers = [:], status: Int = 200, bytes: ByteBuffer? = nil) {
    self.connection.received(headers)
    self.handler?.streamDidReceive(HTTPResponseHead(status: status, headers: headers))
    if let bytes { self.handler?.streamDidReceive(bytes) }
  }

  func send(_ bytes: ByteBuffer) { self.handler?.streamDidReceive(bytes) }

  func end(_ trailers: Headers = ["grpc-status": ["0"]]) {
    let handler = self.handler.take()
    self.connection.answered()
    handler?.streamDidEnd(trailers: trailers)
    self.connection.ended(self)
  }

  func fail(_ error: ConnectError) {
    let handler = self.handler.take()
    handler?.streamDidFail(HTTPStreamFailure(error: error))
    if handler != nil { self.connection.ended(self) }
  }

  func write(_ bytes: ByteBuffer) {}
  func finish(trailers: Headers) {}
  func consume(_ count: Int) {}

  func cancel() {
    self.isCancelled = true
    self.handler = nil
    self.connection.ended(self)
  }
}

/// A call to a channel: what has become of it.
final class FakeCall: HTTPStreamHandler {
  enum Outcome {
    case ended
    case failed(ConnectError)
  }

  private(set) var outcome: Outcome?
  private var stream: (any HTTPStream)?

  func start(on channel: OriginChannel, _ request: HTTPStreamRequest) {
    self.stream = channel.startStream(request, handler: self)
  }

  var isPending: Bool { self.outcome == nil }
  var error: ConnectError? {
    if case .failed(let error)? = self.outcome { error } else { nil }
  }
  var hasEnded: Bool {
    if case .ended? = self.outcome { true } else { false }
  }

  func cancel() { self.stream?.cancel() }
  func expire() { self.stream?.expire() }

  func streamDidStart(on connection: HTTPConnectionInfo) {}
  func streamDidBecomeWritable() {}
  func streamDidReceive(_ head: HTTPResponseHead) {}
  func streamDidReceive(_ bytes: ByteBuffer) {}
  func streamDidEnd(trailers: Headers) {
    XCTAssertNil(self.outcome)
    self.outcome = .ended
  }
  func streamDidFail(_ failure: HTTPStreamFailure) {
    XCTAssertNil(self.outcome)
    self.outcome = .failed(failure.error)
  }
}

/// A channel over a ``FakeNetwork``, in virtual time.
final class FakeFleet {
  let executor = VirtualExecutor()
  let network: FakeNetwork
  let resolver: PushResolver
  private(set) var channel: OriginChannel

  init(
    _ addresses: [String] = [],
    seed: UInt64 = 1,
    limits: ConnectionLimits = ConnectionLimits(),
    logger: Logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }),
    resolver: PushResolver = PushResolver(),
    behind wrapper: (any NameResolver)? = nil,
    _ configure: (inout ChannelConfiguration) -> Void = { _ in }
  ) {
    self.network = FakeNetwork(self.executor)
    self.resolver = resolver
    var configuration = ChannelConfiguration(resolver: wrapper ?? resolver)
    configure(&configuration)
    self.channel = OriginChannel(
      ChannelEnvironment(
        origin: Origin(scheme: .http, host: "fleet.test", port: 80),
        executor: self.executor,
        opener: self.network,
        resolver: self.resolver,
        configuration: configuration,
        limits: limits,
        logger: logger,
        seed: seed
      )
    )
    if !addresses.isEmpty { self.resolve(addresses) }
  }

  func resolve(_ addresses: [String], serviceConfig: String? = nil) {
    self.resolver.update(addresses.compactMap(Endpoint.init), serviceConfig: serviceConfig)
    self.executor.runUntilIdle()
  }

  /// Starts a call and lets happen what does not take time.
  @discardableResult
  func call(
    waitForReady: Bool = false,
    headers: Headers = [:],
    hash: UInt64? = nil,
    authority: String? = nil
  ) -> FakeCall {
    let call = FakeCall()
    var request = HTTPStreamRequest(method: .post, target: "/a.B/C", headers: headers, body: .streamed)
    request.waitsForReady = waitForReady
    request.authority = authority
    if let hash { request.context[RoutingHash.self] = hash }
    self.executor.sync { call.start(on: self.channel, request) }
    self.executor.runUntilIdle()
    return call
  }

  func run(_ work: () -> Void) {
    self.executor.sync(work)
    self.executor.runUntilIdle()
  }

  func advance(by duration: Duration) {
    self.executor.advance(by: duration)
  }
}
