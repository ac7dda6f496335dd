// Extracted from Sources/ConnectInterceptors/ConnectInterceptors.docc/Guards.md by `make generate`.

import Connect
import ConnectInterceptors

private func ConnectInterceptors_Guards_1() async throws {
  let budget = RetryBudget()
  let breaker = CircuitBreaker()
  let limiter = ConcurrencyLimiter(maximumCalls: 100, maximumWaiting: 1000, maximumWait: .seconds(1))
  let config = ProtocolClientConfig(
    host: "https://api.example.com",
    interceptors: [
      { _ in RetryInterceptor(policy: .defaults, budget: budget) },
      { _ in CircuitBreakerInterceptor(breaker) },
      { _ in ConcurrencyLimitInterceptor(limiter) },
    ]
  )
  _ = budget
  _ = breaker
  _ = limiter
  _ = config
}
