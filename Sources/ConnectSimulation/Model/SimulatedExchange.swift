internal import Connect
internal import ConnectTesting
internal import NIOCore

/// A request and its response behind the network of a simulation: data of either side arrives later, and not while their
/// zones are separated.
///
/// `@unchecked Sendable`: touched on the simulation's executor alone.
final class SimulatedExchange: FailableExchange, @unchecked Sendable {
  private enum Item {
    case part(InMemoryResponse.Part)
    case failure(HTTPStreamFailure)
  }

  /// How many bytes of a response may be in flight.
  private static let window = 65_535

  private let base: InMemoryExchange
  private let network: SimulatedNetwork
  private let clientZone: String?
  private let serverZone: String
  private let requestDelay: Duration
  private let responseDelay: Duration
  /// What is on its way to the client.
  private var outbox = CircularBuffer<(item: Item, due: Duration)>()
  private var isDelivering = false
  private var unsentBytes = 0
  private var senders: [Waiter] = []

  init(_ base: InMemoryExchange, to server: SimulatedServer, in network: SimulatedNetwork) {
    self.base = base
    self.network = network
    self.clientZone = base.connection.route.clientZone
    self.serverZone = server.zone
    self.requestDelay = network.sampleOneWay()
    self.responseDelay = network.sampleOneWay()
  }

  // MARK: The request

  /// Waits until the request has come to the server.
  ///
  /// - Returns: Whether there is anybody to answer.
  func arrive() async -> Bool {
    do {
      if self.requestDelay > .zero { try await self.base.sleep(for: self.requestDelay) }
      try await self.pass()
    } catch {
      return false
    }
    return true
  }

  /// When the client has cancelled the request; nil if it has not.
  var closeTime: Duration? { self.base.closeTime }

  func nextChunk() async throws -> ByteBuffer? {
    let chunk = try await self.base.nextChunk()
    let arrival = self.base.lastChunkTime + self.requestDelay
    if arrival > self.network.now { try await self.base.sleep(for: arrival - self.network.now) }
    // Data that had arrived before the zones were separated is delivered.
    if let since = self.separationTime, since < arrival { try await self.pass() }
    return chunk
  }

  private var separationTime: Duration? {
    self.clientZone.flatMap { self.network.separationTime(of: $0, self.serverZone) }
  }

  /// Waits until nothing separates client and server.
  private func pass() async throws {
    guard let clientZone, self.separationTime != nil else { return }
    switch await self.network.waitUntilConnected(clientZone, self.serverZone) {
    case true?: return
    case nil: throw CancellationError()
    case false?: throw self.loseConnection()
    }
  }

  @discardableResult
  private func loseConnection() -> ConnectError {
    let message =
      "the connection was lost: sent data had no acknowledgement within \(SimulatedNetwork.userTimeout)"
    let error = ConnectError(code: .unavailable, message: message)
    self.base.connection.disconnect(error)
    return error
  }

  // MARK: The response

  func sendHead(status: Int, headers: Headers) async throws {
    try self.send(.head(HTTPResponseHead(status: status, headers: headers)))
  }

  func sendBody(_ bytes: ByteBuffer) async throws {
    guard bytes.readableBytes > 0 else { return }
    self.unsentBytes += bytes.readableBytes
    try self.send(.body(bytes))
    while self.unsentBytes > Self.window, self.base.isOpen {
      let waiter = Waiter()
      self.senders.append(waiter)
      guard await waiter.wait(cancellable: true) else { throw CancellationError() }
    }
  }

  func sendEnd(_ bytes: ByteBuffer, trailers: Headers) async throws {
    try await self.sendBody(bytes)
    try self.send(.end(trailers: trailers))
  }

  func reset(code: UInt32) async { self.add(.failure(.reset(code: code))) }

  func failLater(_ failure: HTTPStreamFailure) { self.add(.failure(failure)) }

  private func send(_ part: InMemoryResponse.Part) throws(ConnectError) {
    try self.base.advance(with: part)
    self.add(.part(part))
  }

  private func add(_ item: Item) {
    self.outbox.append((item, self.network.now + self.responseDelay))
    self.deliver()
  }

  /// Delivers the items that are due, in their order.
  private func deliver() {
    while !self.isDelivering, let (item, due) = self.outbox.first {
      let delay = due - self.network.now
      if delay > .zero {
        self.isDelivering = true
        self.network.schedule(after: delay) { self.goOn() }
      } else if let clientZone, self.separationTime != nil {
        self.isDelivering = true
        self.network.whenConnected(clientZone, self.serverZone) { isConnected in
          if isConnected { self.goOn() } else { self.loseConnection() }
        }
      } else {
        self.outbox.removeFirst()
        self.deliver(item)
      }
    }
  }

  private func goOn() {
    self.isDelivering = false
    self.deliver()
  }

  private func deliver(_ item: Item) {
    switch item {
    case .part(.body(let bytes)):
      self.base.post(.body(bytes)) {
        self.unsentBytes -= bytes.readableBytes
        let senders = self.senders
        self.senders = []
        for sender in senders { sender.resume(true) }
      }
    case .part(let part): self.base.post(part, onSent: nil)
    case .failure(let failure): self.base.failLater(failure)
    }
  }

  // MARK: As it is

  var head: ServerRequestHead { self.base.head }

  func sleep(for duration: Duration) async throws { try await self.base.sleep(for: duration) }

  func setDeadline(in duration: Duration) { self.base.setDeadline(in: duration) }

  func waitUntilClosed() async { await self.base.waitUntilClosed() }
}
