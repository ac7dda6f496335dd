internal import Connect
internal import ConnectChannels
internal import ConnectInterceptors
package import ConnectSimulation
internal import ConnectTesting
internal import Synchronization

struct Text: Codable, Sendable, Equatable {
  var text: String
}

extension MethodSpec where Input == Text, Output == Text {
  static let post = MethodSpec<Text, Text>(codablePath: "/explore.Explorer/Post", streamType: .unary)
  static let get = MethodSpec<Text, Text>(
    codablePath: "/explore.Explorer/Get",
    streamType: .unary,
    idempotencyLevel: .noSideEffects
  )
  static let list = MethodSpec<Text, Text>(codablePath: "/explore.Explorer/List", streamType: .serverStream)
}

/// What a run of a scenario has shown.
package struct Finding: Sendable {
  package let report: SimulationReport
  /// What must not happen and did.
  package let problems: [String]
}

/// What is known of the calls of a run.
///
/// `@unchecked Sendable`: touched on the simulation's executor, and behind the run.
private final class Ledger: @unchecked Sendable {
  /// Requests that handlers have seen, by call.
  var requests: [String: Int] = [:]
  var problems: [String] = []
  var codes: Set<Code> = []
  var longest = Duration.zero

  func problem(_ text: String) {
    if self.problems.count < 10 { self.problems.append(text) }
  }
}

extension Scenario {
  /// Runs the scenario, and compares what has happened with what may happen.
  package func run() async -> Finding {
    let cluster = SimulatedCluster(seed: self.seed)
    let ledger = Ledger()
    let service = self.makeService(in: cluster, ledger)
    for trouble in self.troubles { trouble.schedule(in: cluster, service) }
    let client = self.makeClient(in: cluster)
    let clock = cluster.clock
    let kind = self.kind
    let report = await cluster.run(for: self.duration, load: self.load) { number in
      let start = clock.now
      do {
        try await Self.call(client, kind, "\(number)", ledger)
      } catch {
        ledger.codes.insert(ConnectError(error).code)
        ledger.longest = max(ledger.longest, start.duration(to: clock.now))
        throw error
      }
      ledger.longest = max(ledger.longest, start.duration(to: clock.now))
    }
    return Finding(report: report, problems: report.violations + self.check(report, ledger))
  }

  private static func call(_ client: ProtocolClient, _ kind: Kind, _ text: String, _ ledger: Ledger)
    async throws
  {
    switch kind {
    case .unary, .get:
      let answer = try await client.unary(kind == .get ? .get : .post, Text(text: text)).get()
      if answer.text != text { ledger.problem("call \(text) got the answer of \(answer.text)") }
    case .serverStream:
      var count = 0
      for try await message in client.serverStream(.list, Text(text: text)).messages {
        if message.text != "\(text) \(count)" {
          ledger.problem("call \(text) got '\(message.text)' as message \(count)")
        }
        count += 1
      }
      if count != 3 { ledger.problem("call \(text) succeeded with \(count) of 3 messages") }
    }
  }

  // MARK: Making it

  private func makeService(in cluster: SimulatedCluster, _ ledger: Ledger) -> SimulatedService {
    cluster.network.roundTrip = self.roundTrip
    cluster.network.loss = self.loss
    let service = cluster.service("explorer.internal:443", servers: self.servers, zones: self.zones) {
      server in
      server.latency = self.latency
      server.concurrency = self.concurrency
      server.queueLimit = self.queueLimit
      server.timeLimit = self.timeLimit
      server.finishesAbandonedRequests = self.finishesAbandonedRequests
      for method in [MethodSpec<Text, Text>.post, .get] {
        server.onUnary(method) { request, _ in
          ledger.requests[request.text, default: 0] += 1
          return request
        }
      }
      server.onServerStream(.list) { request, responses, context in
        ledger.requests[request.text, default: 0] += 1
        for number in 0..<3 {
          try await responses.send(Text(text: "\(request.text) \(number)"))
          try await context.sleep(for: .milliseconds(7))
        }
      }
    }
    service.nameDelay = self.nameDelay
    return service
  }

  private func makeClient(in cluster: SimulatedCluster) -> ProtocolClient {
    var channel = ChannelConfiguration(balancing: self.balancing)
    channel.maximumConnectionAge = self.maximumConnectionAge
    channel.idleTimeout = self.channelIdleTimeout
    var interceptors: [InterceptorFactory] = []
    for _ in 0..<self.passThrough { interceptors.append { _ in PassingInterceptor() } }
    if let attempts = self.attempts {
      var policy = RetryPolicy(maximumAttempts: attempts, methods: { _ in true })
      policy.random = cluster.chance
      let chosen = policy
      let budget = RetryBudget(maximumTokens: self.hasBudget ? 10 : 1_000_000)
      interceptors.append { _ in RetryInterceptor(policy: chosen, budget: budget) }
    }
    for _ in 0..<self.asyncPassThrough { interceptors.append { _ in PassingAsyncInterceptor() } }
    var config = ProtocolClientConfig(
      host: "https://explorer.internal:443",
      networkProtocol: self.networkProtocol,
      codec: JSONCodec(),
      interceptors: interceptors,
      timeout: self.timeout,
      unaryGET: .alwaysEnabled,
      waitForReady: self.waitForReady
    )
    if let hedges = self.hedges {
      config.hedging = { _ in
        HedgingPolicy(maximumAttempts: hedges, delay: .milliseconds(20), allowsSideEffects: true)
      }
    }
    return ProtocolClient(httpClient: cluster.httpClient(channel), config: config)
  }

  // MARK: What may happen

  private func check(_ report: SimulationReport, _ ledger: Ledger) -> [String] {
    var problems = ledger.problems
    if let timeout = self.timeout, ledger.longest > timeout + self.pauses {
      problems.append("a call took \(ledger.longest), its time limit is \(timeout)")
    }
    let most = ledger.requests.values.max() ?? 0
    if most > self.maximumRequests {
      problems.append("servers saw \(most) requests of one call; \(self.maximumRequests) are allowed")
    }
    for code in ledger.codes.subtracting(self.possibleCodes).map(\.name).sorted() {
      problems.append("a call failed with \(code), for which there is no reason")
    }
    if self.isQuiet, report.succeeded != report.calls {
      problems.append(
        "nothing went wrong, and \(report.calls - report.succeeded) of \(report.calls) calls failed"
      )
    }
    return problems
  }

  private var pauses: Duration {
    self.troubles.reduce(.zero) { sum, trouble in
      if case .pause(let time) = trouble.kind { sum + time } else { sum }
    }
  }

  /// Whether all calls have to succeed.
  private var isQuiet: Bool {
    self.troubles.isEmpty && self.timeout == nil && self.queueLimit == nil && self.timeLimit == nil
  }

  private var possibleCodes: Set<Code> {
    var codes: Set<Code> = []
    if self.timeout != nil { codes.insert(.deadlineExceeded) }
    if self.queueLimit != nil { codes.insert(.resourceExhausted) }
    if self.timeLimit != nil || !self.troubles.isEmpty { codes.insert(.unavailable) }
    for trouble in self.troubles {
      if case .fail(_, _, let code, _) = trouble.kind { codes.insert(code) }
    }
    // Attempts to connect may take too long.
    if self.roundTrip != .none || self.loss > 0 { codes.insert(.unavailable) }
    return codes
  }
}

extension Scenario.Trouble {
  fileprivate func schedule(in cluster: SimulatedCluster, _ service: SimulatedService) {
    let kind = self.kind
    switch kind {
    case .crash(let server, let length):
      cluster.at(self.time) { service[server].crash() }
      cluster.at(self.time + length) { service[server].start() }
    case .freeze(let server, let length):
      cluster.at(self.time) { service[server].freeze() }
      cluster.at(self.time + length) { service[server].thaw() }
    case .refuse(let server, let length):
      cluster.at(self.time) { service[server].refuseConnections() }
      cluster.at(self.time + length) { service[server].refuseConnections(false) }
    case .goAway(let server):
      cluster.at(self.time) { service[server].goAway() }
    case .restart(let server, let drain, let downtime):
      cluster.at(self.time) { service[server].restart(drain: drain, downtime: downtime) }
    case .slow(let server, let factor, let length):
      cluster.at(self.time) { service[server].slow(by: factor) }
      cluster.at(self.time + length) { service[server].slow(by: 1) }
    case .fail(let server, let rate, let code, let length):
      cluster.at(self.time) { service[server].fail(rate, with: code) }
      cluster.at(self.time + length) { service[server].fail(0) }
    case .partition(let zone, let length):
      cluster.at(self.time) { cluster.network.partition(zone: zone, for: length) }
    case .resolve(let servers):
      cluster.at(self.time) { service.resolve(to: servers.map { service[$0] }) }
    case .failResolution:
      cluster.at(self.time) { service.failResolution() }
    case .pause(let length):
      cluster.at(self.time) { cluster.pause(for: length) }
    }
  }
}
