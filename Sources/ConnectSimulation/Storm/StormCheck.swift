internal import Connect
internal import ConnectChannels

/// Finds out how much retries of several services multiply the load when the last of them fails, and which deadlines cannot be met.
///
/// ```swift
/// let map = try ServiceMap(json: text)
/// print(await StormCheck(map).run())
/// ```
public struct StormCheck: Sendable {
  /// More than this is a storm.
  public static let limit = 1.2

  /// The services.
  public let map: ServiceMap
  /// Determines all that is random: 1 by default.
  public var seed: UInt64 = 1

  /// A check of these services.
  public init(_ map: ServiceMap) {
    self.map = map
  }

  // MARK: By the rules alone

  /// How much more requests a service may get than without retries, by the attempts of all its callers: the service that has it
  /// worst, and the way to it.
  public var worst: (path: [String], amplification: Double) {
    let worst = self.amplifications { Double($0.attempts) }.max { $0.value.factor < $1.value.factor }
    guard let worst else { return ([], 1) }
    return (worst.value.path, worst.value.factor)
  }

  /// As ``worst``, with the budgets of the configs: when successes are rare, retries are, too.
  public var worstWithBudgets: Double {
    self.amplifications { call in
      guard let throttling = call.config.retryThrottling else { return Double(call.attempts) }
      return min(Double(call.attempts), 1 + throttling.tokenRatio)
    }.values.map(\.factor).max() ?? 1
  }

  /// How many requests one call makes at most, at all services.
  var mostRequests: Double { self.requests { Double($0.attempts) } }

  /// How many requests one call makes if none fails.
  var usualRequests: Double { self.requests { _ in 1 } }

  private func requests(_ attempts: (ServiceMap.Call) -> Double) -> Double {
    var loads: [String: Double] = [:]
    for root in self.map.roots { loads[root.name] = 1 }
    for service in self.map.services {
      for call in service.calls {
        loads[call.service, default: 0] += (loads[service.name] ?? 0) * Double(call.times) * attempts(call)
      }
    }
    return loads.values.sorted().reduce(0, +)
  }

  private func amplifications(
    _ attempts: (ServiceMap.Call) -> Double
  ) -> [String: (path: [String], factor: Double)] {
    // Callers come first, so that all their figures are known.
    var loads: [String: (usual: Double, worst: Double, path: [String], best: Double)] = [:]
    for root in self.map.roots { loads[root.name] = (1, 1, [root.name], 1) }
    for service in self.map.services {
      guard let load = loads[service.name] else { continue }
      for call in service.calls {
        let times = Double(call.times)
        let best = load.best * attempts(call)
        var sum = loads[call.service] ?? (0, 0, [], 0)
        sum.usual += load.usual * times
        sum.worst += load.worst * times * attempts(call)
        if best > sum.best { (sum.path, sum.best) = (load.path + [call.service], best) }
        loads[call.service] = sum
      }
    }
    return loads.mapValues { ($0.path, $0.usual > 0 ? $0.worst / $0.usual : 1) }
  }

  /// How many calls a service gets for each call at the roots, without retries.
  func usualCalls(of name: String) -> Double {
    var calls: [String: Double] = [:]
    for root in self.map.roots { calls[root.name] = 1 }
    for service in self.map.services {
      for call in service.calls {
        calls[call.service, default: 0] += (calls[service.name] ?? 0) * Double(call.times)
      }
    }
    return calls[name] ?? 0
  }

  /// The deadlines that cannot be met, in words.
  public var deadlines: [String] {
    // Those that are called come first.
    var usual: [String: Duration] = [:]
    var longest: [String: Duration] = [:]
    var problems: [String] = []
    for service in self.map.services.reversed() {
      var (usualSum, longestSum) = (service.latency, service.latency)
      for call in service.calls {
        let (usualTime, longestTime) = (usual[call.service] ?? .zero, longest[call.service] ?? .zero)
        let all = longestTime * call.attempts + call.waits
        let timeout = call.rules?.timeout
        if let timeout { problems += self.problems(service, call, timeout, usualTime, longestTime) }
        usualSum += usualTime * call.times
        longestSum += min(all, timeout ?? .longest) * call.times
      }
      (usual[service.name], longest[service.name]) = (usualSum.clamped, longestSum.clamped)
    }
    return problems.reversed()
  }

  private func problems(
    _ service: ServiceMap.Service,
    _ call: ServiceMap.Call,
    _ timeout: Duration,
    _ usual: Duration,
    _ longest: Duration
  ) -> [String] {
    let what = "\(service.name) gives \(call.service) \(Self.text(timeout))"
    if usual > timeout {
      return ["\(what), which takes \(Self.text(usual)) when all is well: it is never met"]
    }
    var problems: [String] = []
    if call.waits >= timeout {
      problems.append(
        "\(what), and waits up to \(Self.text(call.waits)) between \(call.attempts) attempts: the last ones never begin"
      )
    }
    if longest > timeout {
      problems.append(
        "\(what), which may take \(Self.text(longest)) for its own calls: it works on for a caller that has gone"
      )
    }
    return problems
  }

  static func text(_ duration: Duration) -> String {
    duration < .seconds(1)
      ? "\(Plot.number(duration.seconds * 1e3)) ms" : "\(Plot.number(duration.seconds)) s"
  }

  // MARK: With budgets

  /// What ``StormResult/Budget`` holds all ways below the limit: half of the room for a trickle of retries, half for a burst.
  ///
  /// - Parameter share: Which part of the burst is used.
  func budgets(share: Double) -> [StormResult.Budget] {
    let depth = self.deepest
    guard depth > 0 else { return [] }
    let room = Self.limit.root(depth) - 1
    return self.map.services.flatMap { service in
      service.calls.filter { $0.attempts > 1 }.map { call in
        let rate =
          self.map.callsPerSecond * max(self.usualCalls(of: service.name), 1) / Double(service.servers)
        // A burst of half of the tokens may come in ten seconds.
        let tokens = Int(min(room * rate * 10 * share, 1_000).rounded(.down))
        return StormResult.Budget(
          from: service.name,
          to: call.service,
          maxTokens: max(tokens, 2),
          tokenRatio: max((room * 500).rounded(.down) / 1_000, 0.001)
        )
      }
    }
  }

  /// The most calls with retries on a way.
  private var deepest: Int {
    var depths: [String: Int] = [:]
    for service in self.map.services {
      for call in service.calls {
        let depth = (depths[service.name] ?? 0) + (call.attempts > 1 ? 1 : 0)
        depths[call.service] = max(depths[call.service] ?? 0, depth)
      }
    }
    return depths.values.max() ?? 0
  }

  /// The map with these budgets in place of its own.
  func map(with budgets: [StormResult.Budget]) -> [ServiceMap.Service] {
    self.map.services.map { service in
      var service = service
      for index in service.calls.indices {
        let budget = budgets.first { $0.from == service.name && $0.to == service.calls[index].service }
        guard let budget else { continue }
        service.calls[index].config.retryThrottling = .init(
          maximumTokens: budget.maxTokens,
          tokenRatio: budget.tokenRatio
        )
      }
      return service
    }
  }
}
