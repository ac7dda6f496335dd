internal import Logging
internal import Synchronization

/// Logs, once for each kind, which rules of a service the client's calls do not follow.
final class RuleWarnings: Sendable {
  private enum Kind: Hashable {
    case retriesWithoutInterceptor, retriesBeyondCap, hedgedStream
  }

  private struct Checked: Hashable {
    let path: String
    let source: String
  }

  private struct State {
    /// By path and source: routes may have other attempts than the service config.
    var checked: Set<Checked> = []
    var logged: Set<Kind> = []
  }

  private static let maximumChecked = 1_000

  private let state = Mutex(State())

  /// Checks the first call of each method, and the first one that has its attempts from a route.
  func check(_ rules: MethodRules, _ plan: CallPlan, _ hooks: CallHooks?) {
    guard rules.retry != nil || rules.hedging != nil, !plan.isExplained else { return }
    let isNew = self.state.withLock { state in
      if state.checked.count >= Self.maximumChecked { state.checked.removeAll() }
      return state.checked.insert(Checked(path: plan.info.path, source: rules.attemptsSource)).inserted
    }
    guard isNew else { return }
    if let retry = rules.retry, retry.maximumAttempts > 1 {
      let cap = max(plan.environment.settings.maximumRetries, 0)
      if hooks?.followRetryRules != true {
        self.log(
          .retriesWithoutInterceptor,
          "the \(rules.attemptsSource) has a retry policy, which no interceptor follows; "
            + "add RetryInterceptor of ConnectInterceptors",
          plan
        )
      } else if retry.maximumAttempts - 1 > cap {
        self.log(
          .retriesBeyondCap,
          "the \(rules.attemptsSource) allows \(retry.maximumAttempts) attempts, but a call of this client makes no more than "
            + "\(cap) retries: ProtocolClientConfig.Retries.maximumRetries",
          plan
        )
      }
    }
    if rules.hedging != nil, !plan.isUnary {
      self.log(
        .hedgedStream,
        "the \(rules.attemptsSource) has a hedging policy, but streams do not hedge; give their methods a retry policy",
        plan
      )
    }
  }

  private func log(_ kind: Kind, _ message: String, _ plan: CallPlan) {
    guard self.state.withLock({ $0.logged.insert(kind).inserted }) else { return }
    plan.logger.warning("\(message)", metadata: ["rpc.method": "\(plan.info.path)"])
  }
}
