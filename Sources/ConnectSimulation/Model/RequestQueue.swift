internal import Connect
internal import ConnectChannels
internal import ConnectTesting

/// Where requests of a ``SimulatedServer`` wait, and are worked on.
///
/// `@unchecked Sendable`: touched on the simulation's executor alone.
final class RequestQueue: @unchecked Sendable {
  struct Figures {
    var requests = 0
    var succeeded = 0
    var busiest = 0
    var longestQueue = 0
  }

  private enum Admission {
    case admitted, full, gone
  }

  weak var server: SimulatedServer?
  private(set) var figures = Figures()
  private var active = 0
  /// Requests that wait for others to end, in their order.
  private var queue: [Waiter] = []
  /// Requests that wait for a frozen server.
  private var frozen: [Waiter] = []
  /// Counts the lives of the process: requests of an earlier life do not count any more.
  private var life = 0

  /// How many requests are here.
  var load: Int { self.active + self.queue.count + self.frozen.count }

  // MARK: Requests

  func receive(_ exchange: any ServerExchange, _ answer: @Sendable (any ServerExchange) async -> Void) async {
    guard let server = self.server, let recorder = server.recorder else { return }
    guard let network = recorder.cluster?.network, let base = exchange as? InMemoryExchange else { return }
    let life = self.life
    let exchange = SimulatedExchange(base, to: server, in: network)
    guard await exchange.arrive(), life == self.life, recorder.mayArrive(exchange) else { return }
    server.onArrival?(exchange.head)
    // A watch of the health takes no place in the queue.
    if exchange.head.path == HealthService.watch.info.path {
      if await self.waitUntilThawed(server) { await answer(exchange) }
      return
    }
    self.figures.requests += 1
    recorder.requestArrived(at: server, from: base.connection.route.clientZone)
    let arrival = recorder.now
    guard await self.waitUntilThawed(server) else { return }
    switch await self.admit(server) {
    case .gone: return
    case .full: await self.refuse(exchange, .resourceExhausted, "the server's queue is full")
    case .admitted: await self.work(on: exchange, since: arrival, server, answer)
    }
  }

  private func work(
    on exchange: any ServerExchange,
    since arrival: Duration,
    _ server: SimulatedServer,
    _ answer: @Sendable (any ServerExchange) async -> Void
  ) async {
    let life = self.life
    defer { if life == self.life { self.leave() } }
    let (time, code) = server.sampleWork(for: exchange.head.path)
    guard await self.take(time, for: exchange, server), await self.waitUntilThawed(server) else { return }
    if let code = code ?? server.failure(for: exchange.head.path) {
      await self.refuse(exchange, code, "failed on purpose")
    } else if let limit = server.timeLimit, let recorder = server.recorder, recorder.now - arrival > limit {
      await self.refuse(exchange, .unavailable, "the server took longer than \(limit)")
    } else {
      self.figures.succeeded += 1
      await answer(exchange)
    }
  }

  /// - Returns: Whether there is anybody to answer.
  private func take(_ time: Duration, for exchange: any ServerExchange, _ server: SimulatedServer) async
    -> Bool
  {
    guard time > .zero else { return true }
    guard server.finishesAbandonedRequests else { return (try? await exchange.sleep(for: time)) != nil }
    let waiter = Waiter()
    _ = server.memory.executor.schedule(after: time) { waiter.resume(true) }
    return await waiter.wait(cancellable: false)
  }

  private func refuse(_ exchange: any ServerExchange, _ code: Code, _ message: String) async {
    let server = self.server?.memory
    await server?.refuse(exchange, with: ConnectError(code: code, message: message))
  }

  // MARK: The queue

  private func admit(_ server: SimulatedServer) async -> Admission {
    guard let limit = server.concurrency, self.active >= max(limit, 1) else {
      self.active += 1
      self.figures.busiest = max(self.figures.busiest, self.active)
      return .admitted
    }
    guard self.queue.count < server.queueLimit ?? .max else { return .full }
    let waiter = Waiter()
    self.queue.append(waiter)
    self.figures.longestQueue = max(self.figures.longestQueue, self.queue.count)
    // The request takes the place of one that has left.
    if await waiter.wait(cancellable: !server.finishesAbandonedRequests) { return .admitted }
    self.queue.removeAll { $0 === waiter }
    return .gone
  }

  private func leave() {
    while !self.queue.isEmpty {
      if self.queue.removeFirst().resume(true) { return }
    }
    self.active -= 1
  }

  // MARK: Freezing and dying

  func waitUntilThawed(_ server: SimulatedServer) async -> Bool {
    while server.isFrozen {
      let waiter = Waiter()
      self.frozen.append(waiter)
      guard await waiter.wait(cancellable: true) else {
        self.frozen.removeAll { $0 === waiter }
        return false
      }
    }
    return true
  }

  func thaw() {
    let waiters = self.frozen
    self.frozen = []
    for waiter in waiters { waiter.resume(true) }
  }

  /// The process is gone, with all waiting and running requests.
  func die() {
    self.life += 1
    self.active = 0
    let waiters = self.queue + self.frozen
    self.queue = []
    self.frozen = []
    for waiter in waiters { waiter.resume(false) }
  }
}
