internal import Connect
internal import ConnectChannels
internal import ConnectTesting
internal import NIOCore
internal import Synchronization

extension StormCheck {
  /// Simulates the worst: the service with the largest amplification fails, first with the budgets of the map, then with those that are
  /// proposed.
  ///
  /// - Returns: What the rules say, what the simulation says, and budgets that hold the amplification below ``limit``.
  public func run() async -> StormResult {
    let worst = self.worst
    var result = StormResult(
      path: worst.path,
      amplification: worst.amplification,
      amplificationWithBudgets: self.worstWithBudgets,
      deadlines: self.deadlines,
      seed: self.seed
    )
    guard let target = worst.path.last else { return result }
    result.failure = self.failureCode(on: worst.path).name
    let requests = self.mostRequests
    guard self.usualRequests <= Self.mostSimulated else { return result }
    if requests <= Self.mostSimulated {
      let calls = Int(min(max(Self.mostSimulated * 5 / requests, 5), 200))
      result.simulated = await self.simulate(self.map.services, target, calls: calls, &result.violations)
    }
    guard max(result.simulated ?? 1, result.amplificationWithBudgets) > Self.limit else { return result }
    var share = 1.0
    for _ in 0..<4 {
      result.budgets = self.budgets(share: share)
      let services = self.map(with: result.budgets)
      result.simulatedWithProposal = await self.simulate(services, target, calls: 200, &result.violations)
      if result.simulatedWithProposal ?? 1 <= Self.limit { break }
      share /= 2
    }
    return result
  }

  /// How many requests one call may make in a simulation.
  private static let mostSimulated = 20_000.0

  /// The code that most callers on the way repeat calls after.
  private func failureCode(on path: [String]) -> Code {
    var counts: [Code: Int] = [:]
    for (caller, callee) in zip(path, path.dropFirst()) {
      let service = self.map.services.first { $0.name == caller }
      guard let call = service?.calls.filter({ $0.service == callee }).max(by: { $0.attempts < $1.attempts })
      else {
        continue
      }
      switch call.rules?.attempts {
      case .retry(let policy): for code in policy.retryableCodes { counts[code, default: 0] += 1 }
      case .hedging(let policy): for code in policy.nonFatalCodes { counts[code, default: 0] += 1 }
      case nil: break
      }
    }
    let most = counts.values.max() ?? 0
    let codes = counts.filter { $0.value == most }.keys
    return codes.contains(.unavailable)
      ? .unavailable : codes.min { $0.rawValue < $1.rawValue } ?? .unavailable
  }

  /// - Returns: How many times more requests the failing service got than without retries.
  private func simulate(
    _ services: [ServiceMap.Service],
    _ target: String,
    calls: Int,
    _ violations: inout [String]
  ) async -> Double {
    let cluster = SimulatedCluster(seed: self.seed)
    cluster.maximumAttempts = MethodConfig.maximumAttempts
    let requests = Mutex(0)
    let roots = self.map.roots
    let rootNames = Set(roots.map(\.name))
    let failure = self.failureCode(on: self.worst.path)
    for service in services where !rootNames.contains(service.name) {
      let methods = Set(services.flatMap { $0.calls.filter { $0.service == service.name }.map(\.method) })
      cluster.service("\(service.name).internal:443", servers: service.servers) { server in
        server.latency = .constant(service.latency)
        server.concurrency = service.concurrency
        let caller = ChainedCalls(service, in: cluster)
        for method in methods.sorted() {
          server.onUnary(.bytes(method)) { _, _ in
            try await caller.make()
            return ByteBuffer()
          }
        }
        guard service.name == target else { return }
        server.fail(1, with: failure)
        server.onArrival = { _ in requests.withLock { $0 += 1 } }
      }
    }
    let callers = services.filter { rootNames.contains($0.name) }.flatMap { root in
      (0..<root.servers).map { _ in ChainedCalls(root, in: cluster) }
    }
    let rate = self.map.callsPerSecond * Double(roots.count)
    let seconds = min(max(Double(calls) / rate, calls < 200 ? 0 : 10), 60)
    // Each root gets as many calls, on its processes in turn.
    let report = await cluster.run(for: .seconds(seconds), load: .open(perSecond: rate)) { number in
      try await callers[number % callers.count].make()
    }
    violations += report.violations
    let usual = Double(report.calls) * self.usualCalls(of: target) / Double(max(roots.count, 1))
    return usual > 0 ? Double(requests.withLock { $0 }) / usual : 1
  }
}

/// The calls that a process makes for each call that it gets.
private final class ChainedCalls: Sendable {
  private let calls: [(client: ProtocolClient, call: ServiceMap.Call)]

  init(_ service: ServiceMap.Service, in cluster: SimulatedCluster) {
    self.calls = service.calls.map { call in
      (.policed(by: call.config, nil, host: "\(call.service).internal", in: cluster), call)
    }
  }

  /// - Throws: The error of the first call that fails, with its code.
  func make() async throws {
    for (client, call) in self.calls {
      for _ in 0..<call.times {
        guard let error = await client.unary(.bytes(call.method), ByteBuffer()).error else { continue }
        throw ConnectError(code: error.code, message: "\(call.service) failed")
      }
    }
  }
}
