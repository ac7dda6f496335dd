// Extracted from Sources/ConnectTesting/ConnectTesting.docc/ConnectTesting.md by `make generate`.

import Connect
import ConnectTesting

private func ConnectTesting_ConnectTesting_1() async throws {
  let mock = Connectrpc_Eliza_V1_ElizaServiceClientMock()
  mock.mockSay.answer(.message(.with { $0.sentence = "Hello Ada" }))
  let answer = try await mock.say(.with { $0.sentence = "Hello" })
  _ = mock
  _ = answer
}
