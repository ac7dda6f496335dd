// Extracted from Sources/ConnectInterceptors/ConnectInterceptors.docc/RetriesAndHedging.md by `make generate`.

import Connect
import ConnectInterceptors

private func ConnectInterceptors_RetriesAndHedging_1() async throws {
  let budget = RetryBudget()
  let config = ProtocolClientConfig(
    host: "https://api.example.com",
    interceptors: [{ _ in RetryInterceptor(policy: .defaults, budget: budget) }]
  )
  _ = budget
  _ = config
}

private func ConnectInterceptors_RetriesAndHedging_2() async throws {
  var config = ProtocolClientConfig(host: "https://api.example.com")
  config.hedging = { method in
    method.name == "Read" ? HedgingPolicy(maximumAttempts: 3, delay: .milliseconds(20)) : nil
  }
  _ = config
}
