internal import Connect

/// The retry throttling of a service config, shared by the calls of a channel. It is asked about attempts that the service
/// config itself wants, and told how they end.
final class RetryThrottle: AttemptBudget {
  let settings: ServiceConfig.RetryThrottling
  private let tokens: RetryTokens

  init(_ settings: ServiceConfig.RetryThrottling) {
    self.settings = settings
    self.tokens = RetryTokens(maximum: Double(settings.maximumTokens), ratio: settings.tokenRatio)
  }

  var allowsRetry: Bool { self.tokens.allowRetry }

  func recordSuccess() { self.tokens.recordSuccess() }

  func recordFailure() -> Bool { self.tokens.recordFailure() }
}
