// Extracted from Sources/Connect/Connect.docc/ErrorsAndRetries.md by `make generate`.

import Connect
import ConnectInterceptors

private func Connect_ErrorsAndRetries_1() async throws {
  let eliza: Connectrpc_Eliza_V1_ElizaServiceClient = given()
  do {
    let answer = try await eliza.say(.with { $0.sentence = "Hello" })
    print(answer.sentence)
  } catch let error as ConnectError where error.code == .unavailable {
    print("try again later:", error.message ?? "")
  }
  _ = eliza
}

private func Connect_ErrorsAndRetries_2() async throws {
  let error: ConnectError = given()
  for hint in error.unpackedDetails(Connectrpc_Eliza_V1_SayResponse.self) {
    print(hint.sentence)
  }
  for detail in error.details { print(detail.type, detail.value.readableBytes) }
  _ = error
}

private func Connect_ErrorsAndRetries_3() async throws {
  let budget = RetryBudget()
  let config = ProtocolClientConfig(
    host: "https://api.example.com",
    interceptors: [
      { _ in RetryInterceptor(policy: RetryPolicy(maximumAttempts: 3), budget: budget) }
    ],
    timeout: .seconds(5)
  )
  _ = budget
  _ = config
}

private func Connect_ErrorsAndRetries_4() async throws {
  var config: ProtocolClientConfig = given()
  let budget = RetryBudget()
  config.hedging = { method in
    method.name == "Say" ? HedgingPolicy(maximumAttempts: 3, delay: .milliseconds(20), budget: budget) : nil
  }
  _ = config
  _ = budget
}
