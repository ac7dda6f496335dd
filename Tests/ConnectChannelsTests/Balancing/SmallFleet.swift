import ConnectChannels

/// A channel in virtual time over servers that come and go: a balancer, and an ``AddressRace`` for each endpoint.
struct SmallFleet {
  private struct Server {
    let id: EndpointID
    var race: AddressRace
    var timer: Duration?
    /// What each attempt becomes, and when.
    var outcomes: [(time: Duration, attempt: ConnectionAttempt)] = []
    var isUp = true
  }

  private var balancer: any LoadBalancer
  private var random: SeededRandom
  private let loads = EndpointLoads()
  private var servers: [Server] = []
  private var decision: BalancerDecision?
  private var generation: UInt32 = 1
  private(set) var now = Duration.zero
  /// What should not have happened.
  private(set) var failure: String?

  init(_ policy: BalancingPolicy, servers count: Int, seed: UInt64) {
    self.random = SeededRandom(seed: seed)
    self.balancer = policy.makeBalancer(random: &self.random)
    for slot in 0..<count { self.servers.append(self.server(slot)) }
    self.update()
  }

  private mutating func server(_ slot: Int) -> Server {
    let race = AddressRace([.ip("10.0.0.\(slot)", port: 80)])
    return Server(id: EndpointID(slot: slot, generation: self.generation), race: race)
  }

  var state: ConnectivityState { self.decision?.state ?? .idle }

  mutating func setUp(_ index: Int, _ isUp: Bool) {
    self.servers[index].isUp = isUp
    if !isUp, let connection = self.servers[index].race.connection {
      _ = self.servers[index].race.connectionLost(
        connection,
        error: "reset",
        hasServed: true,
        now: self.now
      )
      self.update()
    }
  }

  /// Another server takes the place of this one.
  mutating func replace(_ index: Int) {
    self.generation += 1
    self.servers[index] = self.server(index)
    self.update()
  }

  /// A call of now: where it goes to, or nil.
  mutating func call(hash: UInt64) -> PickResult {
    guard let picker = self.decision?.picker else { return .wait }
    let result = picker.pick(seed: hash, hash: hash)
    switch result {
    case .connect(let id), .endpoint(_, connect: .some(let id), _):
      guard let index = self.servers.firstIndex(where: { $0.id == id }) else {
        self.failure = "connects \(id), which is gone"
        return result
      }
      self.connect(index)
      self.update()
    case .endpoint, .wait, .fail, .drop: break
    }
    if case .endpoint(let id, _, _) = result {
      let server = self.servers.first { $0.id == id }
      if server?.race.state != .ready { self.failure = "a call for \(id), which is not ready" }
    }
    return result
  }

  mutating func advance(by duration: Duration) {
    let end = self.now + duration
    while let next = self.nextEvent, next.time <= end {
      self.now = max(self.now, next.time)
      self.fire(next.index)
      self.update()
    }
    self.now = end
  }

  private var nextEvent: (time: Duration, index: Int)? {
    var next: (time: Duration, index: Int)?
    for (index, server) in self.servers.enumerated() {
      for time in [server.timer, server.outcomes.first?.time].compactMap({ $0 })
      where time < next?.time ?? .seconds(1 << 40) {
        next = (time, index)
      }
    }
    return next
  }

  private mutating func fire(_ index: Int) {
    if let timer = self.servers[index].timer, timer <= self.now {
      self.servers[index].timer = nil
      self.run(index, self.servers[index].race.timerFired(now: self.now, random: &self.random))
    } else if let (time, attempt) = self.servers[index].outcomes.first, time <= self.now {
      self.servers[index].outcomes.removeFirst()
      let actions =
        self.servers[index].isUp
        ? self.servers[index].race.attemptSucceeded(attempt, now: self.now)
        : self.servers[index].race.attemptFailed(attempt, error: "refused", now: self.now)
      self.run(index, actions)
    }
  }

  private mutating func connect(_ index: Int) {
    self.run(index, self.servers[index].race.connect(now: self.now, random: &self.random))
  }

  private mutating func run(_ index: Int, _ actions: [AddressRace.Action]) {
    for action in actions {
      switch action {
      case .connect(let attempt): self.servers[index].outcomes.append((self.now + .milliseconds(10), attempt))
      case .cancel(let attempt): self.servers[index].outcomes.removeAll { $0.attempt == attempt }
      case .schedule(let delay): self.servers[index].timer = self.now + delay
      case .cancelTimer: self.servers[index].timer = nil
      case .close, .stateChanged: break
      }
    }
  }

  /// Does what the balancer decides, until it wants nothing more.
  private mutating func update() {
    for _ in 0..<10 {
      let endpoints = self.servers.map { server in
        BalancedEndpoint(
          id: server.id,
          endpoint: Endpoint(addresses: server.race.addresses),
          state: server.race.state,
          lastError: server.race.lastError
        )
      }
      var context = BalancerContext(now: self.now, random: self.random, loads: self.loads)
      let decision = self.balancer.update(endpoints, in: &context)
      self.random = context.random
      self.decision = decision
      let wanted = self.servers.indices.filter { index in
        decision.connect.contains(self.servers[index].id) && self.servers[index].race.state == .idle
      }
      if wanted.isEmpty { return self.check(endpoints) }
      for index in wanted { self.connect(index) }
    }
    self.failure = "the balancer wants to connect again and again"
  }

  private mutating func check(_ endpoints: [BalancedEndpoint]) {
    let isReady = endpoints.contains { $0.state == .ready }
    if isReady != (self.state == .ready) { self.failure = "\(self.state) of \(endpoints.map(\.state))" }
  }
}
