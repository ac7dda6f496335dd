internal import Connect

extension MethodRules {
  /// The part of a config that concerns calls, within the limits of the config's JSON.
  convenience init(
    _ config: MethodConfig,
    _ throttle: RetryBudget?,
    timeoutSource: String = "service config",
    attemptsSource: String = "service config"
  ) {
    var retry: RetryRules?
    var hedging: Connect.HedgingPolicy?
    switch config.attempts {
    case .retry(let policy): retry = RetryRules(policy, throttle)
    case .hedging(let policy):
      hedging = HedgingPolicy(policy, throttle)
      // Calls that hedge are not retried on top (gRFC A6).
      retry = .noRetries
    case nil: break
    }
    self.init(
      timeout: config.timeout,
      waitForReady: config.waitsForReady,
      maximumRequestMessageSize: config.maximumRequestMessageSize.map { max($0, 0) },
      maximumResponseMessageSize: config.maximumResponseMessageSize.map { max($0, 0) },
      retry: retry,
      hedging: hedging,
      timeoutSource: timeoutSource,
      attemptsSource: attemptsSource
    )
  }
}

extension RetryRules {
  fileprivate convenience init(_ policy: MethodConfig.RetryPolicy, _ throttle: RetryBudget?) {
    self.init(
      maximumAttempts: min(policy.maximumAttempts, MethodConfig.maximumAttempts),
      initialBackoff: policy.initialBackoff,
      maximumBackoff: policy.maximumBackoff,
      backoffMultiplier: policy.backoffMultiplier,
      codes: policy.retryableCodes,
      throttle: throttle
    )
  }
}

extension Connect.HedgingPolicy {
  /// The service's owner knows which methods may be called twice.
  fileprivate init(_ policy: MethodConfig.HedgingPolicy, _ throttle: RetryBudget?) {
    self.init(
      maximumAttempts: min(policy.maximumAttempts, MethodConfig.maximumAttempts),
      delay: policy.hedgingDelay,
      codes: policy.nonFatalCodes,
      allowsSideEffects: true,
      budget: throttle
    )
  }
}
