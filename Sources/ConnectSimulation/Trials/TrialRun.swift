internal import Connect
internal import ConnectChannels
internal import ConnectInterceptors
internal import ConnectTesting
internal import NIOCore
internal import Synchronization

/// One column of the result.
struct TrialPlan: Sendable {
  var name: String
  var config: ServiceConfig?
  var changes: [WhatIf.Change]
}

/// A trial with one seed, and what came of it.
struct TrialRun: Sendable {
  var report: SimulationReport
  /// By method.
  var methods: [String: CallFigures.Method]
  /// Requests in each second.
  var seconds: [Int]

  static let host = "service.internal"

  static func make(_ plan: TrialPlan, of question: WhatIf, seed: UInt64) async -> TrialRun {
    let service = question.service
    let cluster = SimulatedCluster(seed: seed)
    let figures = CallFigures(service.methods, random: cluster.makeRandom())
    let clock = cluster.clock
    var index = 0
    let simulated = cluster.service(
      "\(self.host):443",
      servers: service.servers.count,
      zones: question.serverZones
    ) { server in
      server.behaviour = FittedBehaviour(service, service.servers[index])
      index += 1
      server.concurrency = service.concurrency
      server.finishesAbandonedRequests = service.finishesAbandonedRequests
      server.onArrival = { _ in figures.requestArrived(at: clock.now.offset) }
      for method in service.methods { server.onUnary(.bytes(method.simulatedPath)) { _, _ in ByteBuffer() } }
    }
    cluster.network.roundTrip = service.roundTrip
    let factor = Self.apply(plan.changes, to: simulated, in: cluster, question)
    let zones = question.clientZones
    let clients = (0..<max(question.clientCount, zones.count, 1)).map { number in
      ProtocolClient.policed(
        by: plan.config,
        question.timeout,
        host: self.host,
        in: cluster,
        zone: zones.isEmpty ? "a" : zones[number % zones.count]
      )
    }
    let duration = max(question.duration, .seconds(1))
    let load = Self.load(of: question, times: factor, over: duration)
    let report = await cluster.run(for: duration, load: load) { number in
      let method = figures.next()
      let start = clock.now.offset
      let response = await clients[number % clients.count].unary(.bytes(method), ByteBuffer())
      figures.callEnded(method, response.error?.code, after: clock.now.offset - start)
      _ = try response.get()
    }
    let end = Int(duration.seconds.rounded(.up))
    return TrialRun(report: report, methods: figures.methods, seconds: figures.seconds(to: end))
  }

  private static func load(of question: WhatIf, times factor: Double, over duration: Duration)
    -> SimulatedLoad
  {
    let (rates, rate) = (question.service.rates, question.service.callsPerSecond)
    let mean = rates.reduce(0, +) / Double(max(rates.count, 1))
    guard question.followsRecordedRates, rates.count > 1, mean > 0 else {
      return .open(perSecond: rate * factor)
    }
    return .open(perSecond: rates.map { $0 / mean * rate * factor }, each: duration / rates.count)
  }

  /// - Returns: By what the load is multiplied.
  private static func apply(
    _ changes: [WhatIf.Change],
    to service: SimulatedService,
    in cluster: SimulatedCluster,
    _ question: WhatIf
  ) -> Double {
    var factor = 1.0
    for change in changes {
      if case .load(let times) = change { factor *= times }
      cluster.at(question.changeTime) {
        switch change {
        case .freeze(let server): service[server].freeze()
        case .slow(let server, let factor): service[server].slow(by: factor)
        case .remove(let server): service[server].crash()
        case .loseZone(let zone): cluster.crash(zone: zone)
        case .load: break
        case .rollout(let drain, let downtime):
          service.rollingRestart(every: question.rolloutPause, drain: drain, downtime: downtime)
        }
      }
    }
    return factor
  }

  var figures: WhatIfResult.Figures {
    WhatIfResult.Figures(
      seed: self.report.seed,
      trace: self.report.trace,
      calls: self.report.calls,
      successRate: self.report.successRate,
      failures: self.report.failures,
      p50: self.report.latencies.p50,
      p90: self.report.latencies.p90,
      p99: self.report.latencies.p99,
      attemptsPerCall: self.report.requestsPerCall,
      requestsInWorstSecond: self.seconds.max() ?? 0,
      successOverTime: self.report.intervals.map(\.successRate),
      p99OverTime: self.report.intervals.map(\.p99),
      violations: self.report.violations
    )
  }
}

/// What calls and servers count in a run.
final class CallFigures: Sendable {
  struct Method: Sendable {
    var succeeded = Histogram()
    var failures: [Code: Int] = [:]
  }

  private struct State {
    var random: SeededRandom
    var methods: [String: Method] = [:]
    var seconds: [Int] = []
  }

  private let paths: [String]
  /// The sum of the shares up to each method.
  private let bounds: [Double]
  private let state: Mutex<State>

  init(_ methods: [FittedService.Method], random: SeededRandom) {
    self.paths = methods.map(\.simulatedPath)
    var sum = 0.0
    self.bounds = methods.map { method in
      sum += method.share
      return sum
    }
    self.state = Mutex(State(random: random))
  }

  /// The path of the next call.
  func next() -> String {
    let place = self.state.withLock { $0.random.fraction() } * (self.bounds.last ?? 0)
    var (low, high) = (0, self.bounds.count - 1)
    while low < high {
      let middle = (low + high) / 2
      if self.bounds[middle] <= place { low = middle + 1 } else { high = middle }
    }
    return self.paths[low]
  }

  func callEnded(_ method: String, _ failure: Code?, after time: Duration) {
    self.state.withLock { state in
      if let failure {
        state.methods[method, default: Method()].failures[failure, default: 0] += 1
      } else {
        state.methods[method, default: Method()].succeeded.add(time)
      }
    }
  }

  func requestArrived(at time: Duration) {
    let second = Int(time.seconds)
    guard second >= 0, second < 1_000_000 else { return }
    self.state.withLock { state in
      if second >= state.seconds.count {
        state.seconds.append(contentsOf: repeatElement(0, count: second + 1 - state.seconds.count))
      }
      state.seconds[second] += 1
    }
  }

  var methods: [String: Method] { self.state.withLock { $0.methods } }

  func seconds(to end: Int) -> [Int] { self.state.withLock { Array($0.seconds.prefix(end)) } }
}

extension ProtocolClient {
  /// A client that follows a service config, as gRPC's do: no retries but those that it asks for, and no other budget.
  static func policed(
    by config: ServiceConfig?,
    _ timeout: Duration?,
    host: String,
    in cluster: SimulatedCluster,
    zone: String = "a"
  ) -> ProtocolClient {
    // What a trace shows is a load on all servers; pick_first would not give it.
    let balancing: BalancingPolicy? = config?.loadBalancing == nil ? .roundRobin : nil
    var policy = RetryPolicy(methods: { _ in false })
    policy.random = cluster.chance
    let chosen = policy
    let budget = RetryBudget(maximumTokens: 1_000_000, tokenRatio: 1_000_000)
    return ProtocolClient(
      httpClient: cluster.httpClient(
        ChannelConfiguration(balancing: balancing, serviceConfig: config),
        zone: zone
      ),
      config: ProtocolClientConfig(
        host: "https://\(host)",
        codec: ProtoCodec(),
        interceptors: [{ _ in RetryInterceptor(policy: chosen, budget: budget) }],
        timeout: timeout,
        retries: .init(maximumRetries: MethodConfig.maximumAttempts - 1)
      )
    )
  }
}

extension MethodSpec where Input == ByteBuffer, Output == ByteBuffer {
  /// A unary method whose messages are bytes.
  static func bytes(_ path: String) -> MethodSpec {
    let coding = MessageCoding<ByteBuffer>(
      binary: .init(encode: { bytes, _ in bytes }, decode: { bytes, _ in bytes }),
      json: .init(encode: { bytes, _ in bytes }, decode: { bytes, _ in bytes })
    )
    return MethodSpec(info: MethodInfo(path: path, streamType: .unary), input: coding, output: coding)
  }
}
