package import Connect
package import ConnectChannels
package import ConnectSimulation

/// A cluster, a client, faults and a load, all of which a seed decides.
package struct Scenario: Sendable, CustomStringConvertible {
  package enum Kind: String, Sendable, CaseIterable {
    case unary, get, serverStream
  }

  /// What goes wrong, and when.
  package struct Trouble: Sendable, CustomStringConvertible {
    package enum Kind: Sendable {
      case crash(Int, for: Duration)
      case freeze(Int, for: Duration)
      case refuse(Int, for: Duration)
      case goAway(Int)
      case restart(Int, drain: Duration, downtime: Duration)
      case slow(Int, by: Double, for: Duration)
      case fail(Int, rate: Double, code: Code, for: Duration)
      case partition(String, for: Duration)
      case resolve([Int])
      case failResolution
      case pause(Duration)
    }

    package let time: Duration
    package let kind: Kind
    package var description: String { "\(self.time): \(self.kind)" }
  }

  package let seed: UInt64
  package var servers = 1
  package var zones = ["a"]
  package var latency = Latency.none
  package var concurrency: Int?
  package var queueLimit: Int?
  package var timeLimit: Duration?
  package var finishesAbandonedRequests = false
  package var roundTrip = Latency.none
  package var loss = 0.0
  package var nameDelay = Duration.zero
  package var balancing = BalancingPolicy.pickFirst
  package var maximumConnectionAge: Duration?
  package var channelIdleTimeout = Duration.seconds(1_800)
  package var networkProtocol = NetworkProtocol.connect
  package var timeout: Duration?
  package var waitForReady = false
  /// Attempts by the retry interceptor; nil without one.
  package var attempts: Int?
  package var hasBudget = true
  /// Attempts by hedging; nil for none.
  package var hedges: Int?
  package var passThrough = 0
  package var asyncPassThrough = 0
  package var troubles: [Trouble] = []
  package var duration = Duration.seconds(10)
  package var load = SimulatedLoad.open(perSecond: 5)
  package var kind = Kind.unary

  package init(seed: UInt64) {
    self.seed = seed
    var random = SplitMix64(seed: seed &* 0x9e37_79b9_7f4a_7c15 &+ 1)
    self.chooseServers(&random)
    self.chooseClient(&random)
    self.duration = random.duration(.seconds(2) ... .seconds(40))
    self.chooseTroubles(&random)
    self.load =
      random.chance(0.6)
      ? .open(perSecond: random.number(1...40))
      : .closed(callers: Int(random.number(1...12)), pause: .exponential(mean: .milliseconds(200)))
  }

  private mutating func chooseServers(_ random: inout SplitMix64) {
    self.servers = 1 + random.index(below: 8)
    if random.chance(0.4) { self.zones = ["a", "b"] }
    self.latency = random.latency()
    if random.chance(0.3) { self.concurrency = 1 + random.index(below: 4) }
    if random.chance(0.2) { self.queueLimit = random.index(below: 10) }
    if random.chance(0.1) { self.timeLimit = random.duration(.milliseconds(5) ... .seconds(1)) }
    self.finishesAbandonedRequests = random.chance(0.2)
    if random.chance(0.5) { self.roundTrip = random.latency() }
    if random.chance(0.2) { self.loss = random.number(0...0.2) }
    if random.chance(0.3) { self.nameDelay = random.duration(.zero ... .seconds(5)) }
  }

  private mutating func chooseClient(_ random: inout SplitMix64) {
    var policies: [BalancingPolicy] = [
      .pickFirst, .pickFirst(shuffles: true), .roundRobin, .roundRobin, .leastRequest(),
      .leastRequest(choices: 5), .weightedRoundRobin(.init(source: .resolver)), .ringHash(),
    ]
    policies.append(.randomSubset(of: .roundRobin, size: 2))
    policies.append(
      .outlierDetection(.init(interval: .seconds(2), baseEjectionTime: .seconds(3)), of: .roundRobin)
    )
    self.balancing = random.element(policies)
    if random.chance(0.2) { self.maximumConnectionAge = random.duration(.seconds(1) ... .seconds(10)) }
    if random.chance(0.2) { self.channelIdleTimeout = random.duration(.milliseconds(100) ... .seconds(5)) }
    self.networkProtocol = random.element([.connect, .grpc, .grpcWeb])
    if random.chance(0.8) { self.timeout = random.duration(.milliseconds(20) ... .seconds(8)) }
    self.waitForReady = self.timeout != nil && random.chance(0.3)
    if random.chance(0.5) { self.attempts = 2 + random.index(below: 3) }
    self.hasBudget = random.chance(0.6)
    if random.chance(0.2) { self.hedges = 2 + random.index(below: 3) }
    self.passThrough = random.index(below: 3)
    if random.chance(0.3) { self.asyncPassThrough = 1 + random.index(below: 2) }
    self.kind = random.element(Kind.allCases)
  }

  private mutating func chooseTroubles(_ random: inout SplitMix64) {
    guard random.chance(0.85) else { return }
    for _ in 0..<(1 + random.index(below: 6)) {
      let time = self.duration.scaled(by: random.fraction())
      let server = random.index(below: self.servers)
      let length = random.duration(.milliseconds(1) ... .seconds(15))
      let kind: Trouble.Kind
      switch random.index(below: 11) {
      case 0: kind = .crash(server, for: length)
      case 1: kind = .freeze(server, for: length)
      case 2: kind = .refuse(server, for: length)
      case 3: kind = .goAway(server)
      case 4: kind = .restart(server, drain: random.duration(.zero ... .seconds(2)), downtime: length)
      case 5: kind = .slow(server, by: random.number(1...50), for: length)
      case 6:
        kind = .fail(
          server,
          rate: random.fraction(),
          code: random.element([.unavailable, .internalError]),
          for: length
        )
      case 7: kind = .partition(random.element(self.zones), for: length)
      case 8: kind = .resolve((0..<self.servers).filter { _ in random.chance(0.6) })
      case 9: kind = .failResolution
      default: kind = .pause(random.duration(.milliseconds(1) ... .seconds(3)))
      }
      self.troubles.append(Trouble(time: time, kind: kind))
    }
    self.troubles.sort { $0.time < $1.time }
  }

  /// How many requests of a call servers may see.
  package var maximumRequests: Int {
    // Each attempt of the interceptor may hedge; what was not processed may go out once more.
    (self.attempts ?? 1) * (self.hedges ?? 1) + 1
  }

  package var description: String {
    var text =
      "seed \(self.seed): \(self.servers) servers, \(self.balancing), \(self.networkProtocol), \(self.kind)"
    text +=
      ", timeout \(self.timeout.map { "\($0)" } ?? "none"), attempts \(self.attempts ?? 1), hedges \(self.hedges ?? 1)"
    if self.waitForReady { text += ", waits for ready" }
    for trouble in self.troubles { text += "\n  \(trouble)" }
    return text
  }
}

extension SplitMix64 {
  mutating func chance(_ part: Double) -> Bool { self.fraction() < part }

  mutating func number(_ range: ClosedRange<Double>) -> Double {
    range.lowerBound + (range.upperBound - range.lowerBound) * self.fraction()
  }

  mutating func duration(_ range: ClosedRange<Duration>) -> Duration {
    range.lowerBound + (range.upperBound - range.lowerBound).scaled(by: self.fraction())
  }

  mutating func element<Element>(_ elements: [Element]) -> Element {
    elements[self.index(below: elements.count)]
  }

  mutating func latency() -> Latency {
    switch self.index(below: 4) {
    case 0: .none
    case 1: .constant(self.duration(.milliseconds(1) ... .milliseconds(300)))
    case 2: .exponential(mean: self.duration(.milliseconds(1) ... .milliseconds(100)))
    default:
      .logNormal(median: self.duration(.milliseconds(1) ... .milliseconds(50)), p99: .milliseconds(500))
    }
  }
}
