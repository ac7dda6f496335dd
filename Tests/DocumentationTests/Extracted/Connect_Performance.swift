// Extracted from Sources/Connect/Connect.docc/Performance.md by `make generate`.

import Connect
import ConnectNIO

private func Connect_Performance_1() async throws {
  let client: ProtocolClient = given()
  let eliza: Connectrpc_Eliza_V1_ElizaServiceClient = given()
  try await withTaskExecutorPreference(client.taskExecutor) {
    for number in 1...1_000 {
      _ = try await eliza.say(.with { $0.sentence = "\(number)" })
    }
  }
  _ = client
  _ = eliza
}

private func Connect_Performance_2() async throws {
  var configuration = NIOHTTPClient.Configuration.defaults
  configuration.eventLoops = 4
  let httpClient = NIOHTTPClient(configuration: configuration)
  _ = configuration
  _ = httpClient
}

private func Connect_Performance_3() async throws {
  var configuration = NIOHTTPClient.Configuration.defaults
  configuration.keepsFreedMemory = true
  let httpClient = NIOHTTPClient(configuration: configuration)
  _ = configuration
  _ = httpClient
}
