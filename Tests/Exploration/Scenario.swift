package import Connect
package import ConnectChannels
package import ConnectSimulation

/// A cluster, a client, faults and a load, all decided by a seed.
package struct Scenario: Sendable, CustomStringConvertible {
  package enum Kind: String, Sendable, CaseIterable {
    case unary, get, cacheAndNetwork, serverStream, clientStream, bidirectionalStream
  }

  package let seed: UInt64
  package var servers = 1
  package var zones = ["a"]
  package var latency = Latency.none
  package var concurrency: Int?
  package var queueLimit: Int?
  package var timeLimit: Duration?
  package var finishesAbandonedRequests = false
  /// How many requests a server takes on a connection before it renews the connection; nil for any number.
  package var requestsPerConnection: Int?
  /// The age at which servers renew connections; nil for none.
  package var serverConnectionAge: Duration?
  package var roundTrip = Latency.none
  package var loss = 0.0
  package var nameDelay = Duration.zero
  package var balancing = BalancingPolicy.pickFirst
  package var maximumConnectionAge: Duration?
  package var channelIdleTimeout = Duration.seconds(1_800)
  package var networkProtocol = NetworkProtocol.connect
  package var timeout: Duration?
  package var waitForReady = false
  /// The number of attempts of the retry interceptor; nil without the interceptor.
  package var attempts: Int?
  package var hasBudget = true
  /// The number of attempts of hedging; nil without hedging.
  package var hedges: Int?
  package var usesJSON = false
  /// How long cached answers are fresh; nil without a cache.
  package var cacheLifetime: Duration?
  package var prefersNetwork = false
  /// How long tokens are valid; nil for calls without tokens.
  package var tokenLifetime: Duration?
  package var hasBreaker = false
  package var callBound: (calls: Int, waiting: Int, wait: Duration?)?
  package var hasAdapter = false
  /// The share of calls that is cancelled, from 0 to 1.
  package var cancellations = 0.0
  package var checksHealth = false
  package var serviceConfig: String?
  package var isRoundRobin = false
  package var isPickFirst = false
  package var passThrough = 0
  package var asyncPassThrough = 0
  /// Nil without a tree of policies or routes.
  var tree: Tree?
  var treeWeights: [UInt32] = []
  /// The policy for most of the tree's leaves.
  var leaf = BalancingPolicy.roundRobin
  var leafIsPickFirst = false
  var zoneSubject: ZoneSubject?
  /// The time of a round trip if it is always the same.
  var roundTripTime: Duration?
  /// Whether policies of the tree may eject endpoints.
  var leavesMayEject = false
  /// Whether the model counts where calls go, so that no trouble may come.
  var needsQuiet = false
  /// The states of routes and clusters, in their order; empty without routes.
  var routing: [RoutingStep] = []
  package var troubles: [Trouble] = []
  package var duration = Duration.seconds(10)
  package var load = SimulatedLoad.open(perSecond: 5)
  package var kind = Kind.unary

  package init(seed: UInt64) {
    self.seed = seed
    var random = SeededRandom(seed: seed &* 0x9e37_79b9_7f4a_7c15 &+ 1)
    self.chooseServers(&random)
    self.chooseClient(&random)
    self.duration = random.duration(.seconds(2) ... .seconds(40))
    self.chooseTroubles(&random)
    if random.chance(0.4) { self.narrow(to: random.element(Focus.allCases), &random) }
    self.load =
      random.chance(0.6)
      ? .open(perSecond: random.number(1...20))
      : .closed(callers: Int(random.number(1...6)), pause: .exponential(mean: .milliseconds(200)))
    // Of its own chance, so that the other choices of a seed stay.
    var renewal = SeededRandom(seed: seed &* 0x2545_f491_4f6c_dd1d &+ 2)
    if renewal.chance(0.2) { self.requestsPerConnection = 1 + renewal.index(below: 20) }
    // At least 2: a watch of the health is a request, too, and would use up each connection.
    if self.checksHealth, self.requestsPerConnection == 1 { self.requestsPerConnection = 2 }
    if renewal.chance(0.1) {
      self.serverConnectionAge = renewal.duration(.milliseconds(100) ... .seconds(5))
    }
    self.chooseZones()
  }

  private mutating func chooseServers(_ random: inout SeededRandom) {
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

  private mutating func chooseClient(_ random: inout SeededRandom) {
    var policies: [BalancingPolicy] = [
      .pickFirst, .pickFirst(shuffles: true), .roundRobin, .roundRobin, .leastRequest(),
      .leastRequest(choices: 5), .weightedRoundRobin(.init(source: .resolver)), .ringHash(),
    ]
    policies.append(.randomSubset(of: .roundRobin, size: 2))
    policies.append(
      .outlierDetection(.init(interval: .seconds(2), baseEjectionTime: .seconds(3)), of: .roundRobin)
    )
    let policy = random.index(below: policies.count)
    self.balancing = policies[policy]
    self.isPickFirst = policy < 2
    self.isRoundRobin = policy == 2 || policy == 3
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
    self.usesJSON = random.chance(0.2)
    self.chooseInterceptors(&random)
    if random.chance(0.2) { self.cancellations = random.number(0...0.5) }
    self.checksHealth = random.chance(0.25)
    if random.chance(0.2) { self.serviceConfig = random.serviceConfig() }
  }

  private mutating func chooseInterceptors(_ random: inout SeededRandom) {
    if self.kind == .get || self.kind == .cacheAndNetwork, random.chance(0.5) {
      self.cacheLifetime = random.duration(.milliseconds(100) ... .seconds(10))
      self.prefersNetwork = random.chance(0.3)
    }
    if random.chance(0.2) { self.tokenLifetime = random.duration(.seconds(20) ... .seconds(60)) }
    self.hasBreaker = random.chance(0.15)
    if random.chance(0.15) {
      self.callBound = (
        calls: 1 + random.index(below: 5),
        waiting: random.index(below: 10),
        wait: random.chance(0.5) ? random.duration(.milliseconds(10) ... .seconds(2)) : nil
      )
    }
    self.hasAdapter = random.chance(0.15)
  }

  private mutating func chooseTroubles(_ random: inout SeededRandom) {
    guard random.chance(0.85) else { return }
    for _ in 0..<(1 + random.index(below: 6)) {
      let time = self.duration.scaled(by: random.fraction())
      let server = random.index(below: self.servers)
      let length = random.duration(.milliseconds(1) ... .seconds(15))
      let kind: Trouble.Kind
      switch random.index(below: 14) {
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
      case 10: kind = .pause(random.duration(.milliseconds(1) ... .seconds(3)))
      case 11: kind = .unhealthy(server, for: length)
      case 12: kind = .revokeTokens
      default: kind = .configure(random.chance(0.8) ? random.serviceConfig() : nil)
      }
      self.troubles.append(Trouble(time: time, kind: kind))
    }
    self.troubles.sort { $0.time < $1.time }
  }

  /// The text of a call. Calls share texts if a cache is to have hits.
  func text(of number: Int) -> String { "\(self.cacheLifetime == nil ? number : number % 7)" }

  var hasServiceConfig: Bool {
    self.serviceConfig != nil
      || self.troubles.contains { if case .configure(.some) = $0.kind { true } else { false } }
  }

  package var description: String {
    var text =
      "seed \(self.seed): \(self.servers) servers, \(self.treeText), \(self.networkProtocol), \(self.kind)"
    text +=
      ", timeout \(self.timeout.map { "\($0)" } ?? "none"), attempts \(self.attempts ?? 1), hedges \(self.hedges ?? 1)"
    if self.tree != nil { text += ", zones a, b, c" }
    if let subject = self.zoneSubject { text += ", \(subject)" }
    if self.waitForReady { text += ", waits for ready" }
    if let count = self.requestsPerConnection { text += ", \(count) requests on a connection" }
    if let age = self.serverConnectionAge { text += ", servers renew connections after \(age)" }
    if self.usesJSON { text += ", JSON" }
    if self.cacheLifetime != nil { text += ", cache" }
    if self.tokenLifetime != nil { text += ", credentials" }
    if self.hasBreaker { text += ", circuit breaker" }
    if let bound = self.callBound { text += ", at most \(bound.calls) calls" }
    if self.checksHealth { text += ", health checks" }
    if self.cancellations > 0 { text += ", cancellations" }
    if let config = self.serviceConfig { text += "\n  service config \(config)" }
    for step in self.routing { text += "\n  \(step)" }
    for trouble in self.troubles { text += "\n  \(trouble)" }
    return text
  }
}

/// A subject of which the model can check more when fewer things happen.
private enum Focus: CaseIterable {
  case health, budget, fairness, names
}

extension Scenario {
  /// Removes whatever keeps the model from checking the subject, and adds faults that concern the subject.
  fileprivate mutating func narrow(to focus: Focus, _ random: inout SeededRandom) {
    self.serviceConfig = nil
    self.loss = 0
    self.duration = max(self.duration, .seconds(20))
    switch focus {
    case .health:
      self.checksHealth = true
      self.spread(&random)
      self.troubles.removeAll { !$0.isClear }
      for _ in 0..<3 {
        self.add(
          .unhealthy(random.index(below: self.servers), for: random.duration(.seconds(6) ... .seconds(15))),
          &random
        )
      }
    case .budget:
      self.attempts = 2 + random.index(below: 3)
      self.hasBudget = true
      self.hedges = nil
      self.tokenLifetime = nil
      self.troubles.removeAll { !$0.isClear }
      for server in 0..<self.servers {
        self.add(.fail(server, rate: random.number(0.2...1), code: .unavailable, for: .seconds(15)), &random)
      }
    case .fairness:
      self.spread(&random)
      self.balancing = .roundRobin
      self.isRoundRobin = true
      self.troubles = []
      (self.timeout, self.queueLimit, self.timeLimit, self.callBound) = (nil, nil, nil, nil)
      (self.waitForReady, self.cancellations) = (false, 0)
      (self.attempts, self.hedges, self.cacheLifetime, self.tokenLifetime) = (nil, nil, nil, nil)
      self.maximumConnectionAge = nil
      self.channelIdleTimeout = .seconds(1_800)
    case .names:
      self.cacheLifetime = nil
      for _ in 0..<3 {
        self.add(.resolve((0..<self.servers).filter { _ in random.chance(0.6) }), &random)
      }
    }
    self.troubles.sort { $0.time < $1.time }
  }

  private mutating func spread(_ random: inout SeededRandom) {
    self.servers = max(self.servers, 2 + random.index(below: 7))
    if self.isPickFirst { self.balancing = .leastRequest() }
    self.isPickFirst = false
  }

  private mutating func add(_ kind: Trouble.Kind, _ random: inout SeededRandom) {
    self.troubles.append(Trouble(time: self.duration.scaled(by: random.number(0...0.6)), kind: kind))
  }
}

extension Scenario.Trouble {
  /// Whether the model knows when clients notice the trouble, and what follows.
  var isClear: Bool {
    switch self.kind {
    case .freeze, .partition, .pause, .configure: false
    default: true
    }
  }
}

extension SeededRandom {
  mutating func chance(_ part: Double) -> Bool { self.fraction() < part }

  mutating func number(_ range: ClosedRange<Double>) -> Double {
    range.lowerBound + (range.upperBound - range.lowerBound) * self.fraction()
  }

  mutating func duration(_ range: ClosedRange<Duration>) -> Duration {
    // In whole microseconds, which are easy to read.
    let length = (range.upperBound - range.lowerBound).scaled(by: self.fraction())
    return range.lowerBound + .microseconds(Int64(length / .microseconds(1)))
  }

  mutating func element<Element>(_ elements: [Element]) -> Element {
    elements[self.index(below: elements.count)]
  }

  /// A random service config, as a service may have for its calls.
  mutating func serviceConfig() -> String {
    let seconds = "\(Double(50 + self.index(below: 3_000)) / 1_000)s"
    let rules =
      switch self.index(below: 5) {
      case 0: #""timeout":"\#(seconds)""#
      case 1: #""timeout":"\#(seconds)","waitForReady":true"#
      case 2:
        #""retryPolicy":{"maxAttempts":4,"initialBackoff":"0.05s","maxBackoff":"1s","backoffMultiplier":2,"retryableStatusCodes":["UNAVAILABLE"]}"#
      case 3:
        #""hedgingPolicy":{"maxAttempts":3,"hedgingDelay":"0.03s","nonFatalStatusCodes":["UNAVAILABLE"]}"#
      default: #""maxRequestMessageBytes":1000"#
      }
    let throttle = self.chance(0.3) ? #","retryThrottling":{"maxTokens":10,"tokenRatio":0.1}"# : ""
    let balancing = self.chance(0.3) ? #","loadBalancingConfig":[{"round_robin":{}}]"# : ""
    return #"{"methodConfig":[{"name":[{}],\#(rules)}]\#(throttle)\#(balancing)}"#
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
