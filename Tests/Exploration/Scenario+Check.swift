internal import Connect
internal import ConnectSimulation

/// Simple models of the possible results of a scenario.
extension Scenario {
  func problems(_ report: SimulationReport, _ ledger: Ledger) -> [String] {
    var problems = ledger.problems
    // The sender of a stream learns of a failure only with its next message.
    let notice = self.kind == .clientStream ? Duration.milliseconds(5) : .zero
    if let timeout = self.timeout, ledger.longest > timeout + self.pauses + notice {
      problems.append("a call took \(ledger.longest), its time limit is \(timeout)")
    }
    if self.cacheLifetime == nil, ledger.mostRequests > self.maximumRequests {
      problems.append(
        "servers saw \(ledger.mostRequests) requests of one call; \(self.maximumRequests) are allowed"
      )
    }
    for code in ledger.codes.subtracting(self.possibleCodes).map(\.name).sorted() {
      problems.append("a call failed with \(code), for which there is no reason")
    }
    if self.isQuiet, report.succeeded != report.calls {
      problems.append(
        "nothing went wrong, and \(report.calls - report.succeeded) of \(report.calls) calls failed"
      )
    }
    if let lifetime = self.cacheLifetime {
      let oldest = lifetime + ledger.longest * 2 + self.pauses
      if ledger.oldestAnswer > oldest {
        problems.append("an answer was \(ledger.oldestAnswer) old, of at most \(oldest)")
      }
    }
    problems += self.budgetProblem(report) + self.fairnessProblem(report, ledger)
    problems += self.zoneProblems(report, ledger)
    return problems
  }

  /// Each retry costs a token. At most half of the tokens may be spent. Ten successes earn one token.
  private func budgetProblem(_ report: SimulationReport) -> [String] {
    guard self.attempts != nil, self.hasBudget, self.hedges == nil, !self.hasServiceConfig,
      self.tokenLifetime == nil
    else { return [] }
    let most = Double(report.calls) + 6 + 0.1 * Double(report.requests)
    guard Double(report.requests) > most else { return [] }
    return ["\(report.requests) requests of \(report.calls) calls are more than the retry budget allows"]
  }

  /// Servers that are all available are picked in turn.
  private func fairnessProblem(_ report: SimulationReport, _ ledger: Ledger) -> [String] {
    guard self.isQuiet, self.isRoundRobin, self.attempts == nil, self.hedges == nil, self.cancellations == 0,
      self.cacheLifetime == nil, self.tokenLifetime == nil, self.maximumConnectionAge == nil,
      self.requestsPerConnection == nil, self.serverConnectionAge == nil,
      self.channelIdleTimeout > .seconds(60), self.loss == 0, !self.hasServiceConfig
    else { return [] }
    let requests = report.servers.map(\.requests)
    guard let most = requests.max(), let least = requests.min(), most - least > ledger.earlyCalls + 1 else {
      return []
    }
    return ["round robin gave one server \(least) requests, and another \(most)"]
  }

  /// The maximum number of requests that servers may see for one call.
  var maximumRequests: Int {
    // Each attempt of the interceptor may hedge. In addition, there may be one transparent retry, and a refused token
    // may be replaced.
    let attempts = max(self.attempts ?? 1, self.hasServiceConfig ? 5 : 1)
    return attempts * max(self.hedges ?? 1, self.hasServiceConfig ? 5 : 1)
      * (self.tokenLifetime == nil ? 1 : 2) + 1
  }

  private var pauses: Duration {
    self.troubles.reduce(.zero) { sum, trouble in
      if case .pause(let time) = trouble.kind { sum + time } else { sum }
    }
  }

  /// Whether all calls must succeed.
  private var isQuiet: Bool {
    self.troubles.isEmpty && self.timeout == nil && self.queueLimit == nil && self.timeLimit == nil
      && self.cancellations == 0 && self.callBound == nil && !self.hasServiceConfig
  }

  /// Whether the model knows when clients learn of a server's health.
  var modelsHealth: Bool {
    self.checksHealth && !self.isPickFirst && !self.hasServiceConfig && self.loss == 0
      && self.troubles.allSatisfy(\.isClear)
  }

  private var possibleCodes: Set<Code> {
    var codes: Set<Code> = []
    if self.timeout != nil || self.hasServiceConfig { codes.insert(.deadlineExceeded) }
    if self.queueLimit != nil || self.callBound != nil { codes.insert(.resourceExhausted) }
    if self.timeLimit != nil || !self.troubles.isEmpty { codes.insert(.unavailable) }
    for trouble in self.troubles {
      switch trouble.kind {
      case .fail(_, _, let code, _): codes.insert(code)
      case .revokeTokens: if self.tokenLifetime != nil { codes.insert(.unauthenticated) }
      default: break
      }
    }
    // Connection attempts may take too long.
    if self.roundTrip != .none || self.loss > 0 { codes.insert(.unavailable) }
    if self.hasBreaker, !codes.isEmpty { codes.insert(.unavailable) }
    if self.cancellations > 0 { codes.insert(.canceled) }
    return codes
  }
}
