internal import Logging
internal import Synchronization

/// Logs, once for each kind, which rules of a service the client's calls do not follow.
final class RuleWarnings: Sendable {
  private enum Kind: Hashable {
    case retriesWithoutInterceptor, retriesBeyondCap, hedgedStream
  }

  private struct State {
    /// Paths.
    var checked: Set<String> = []
    var logged: Set<Kind> = []
  }

  private static let maximumChecked = 1_000

  private let state = Mutex(State())

  /// Checks the first call of each method.
  func check(_ rules: MethodRules, _ plan: CallPlan, _ hooks: CallHooks?) {
    guard rules.retry != nil || rules.hedging != nil, !plan.isExplained else { return }
    let isNew = self.state.withLock { state in
      if state.checked.count >= Self.maximumChecked { state.checked.removeAll() }
      return state.checked.insert(plan.info.path).inserted
    }
    guard isNew else { return }
    if let retry = rules.retry, retry.maximumAttempts > 1 {
      let cap = max(plan.environment.settings.maximumRetries, 0)
      if hooks?.followRetryRules != true {
        self.log(
          .retriesWithoutInterceptor,
          "the service config has a retry policy, which no interceptor follows; "
            + "add RetryInterceptor of ConnectInterceptors",
          plan
        )
      } else if retry.maximumAttempts - 1 > cap {
        self.log(
          .retriesBeyondCap,
          "the service config allows \(retry.maximumAttempts) attempts, but a call of this client makes no more than "
            + "\(cap) retries: ProtocolClientConfig.Retries.maximumRetries",
          plan
        )
      }
    }
    if rules.hedging != nil, !plan.isUnary {
      self.log(
        .hedgedStream,
        "the service config has a hedging policy, but streams do not hedge; give their methods a retry policy",
        plan
      )
    }
  }

  private func log(_ kind: Kind, _ message: String, _ plan: CallPlan) {
    guard self.state.withLock({ $0.logged.insert(kind).inserted }) else { return }
    plan.logger.warning("\(message)", metadata: ["rpc.method": "\(plan.info.path)"])
  }
}
