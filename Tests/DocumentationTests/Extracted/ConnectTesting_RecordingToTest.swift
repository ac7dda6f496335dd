// Extracted from Sources/ConnectTesting/ConnectTesting.docc/RecordingToTest.md by `make generate`.

import Connect
import ConnectInterceptors
import ConnectNIO
import ConnectSimulation
import ConnectTesting
import XCTest

typealias ElizaMethods = Connectrpc_Eliza_V1_ElizaServiceClient.Methods

final class LateGreetingTests: XCTestCase {
  func testAGreetingSurvivesARestartOfItsBackend() async throws {
    let executor = VirtualExecutor()
    let transport = try CassetteTransport(
      forTest: "late-greeting",
      over: NIOHTTPClient(),
      configuration: .init(messages: .of(Connectrpc_Eliza_V1_ElizaServiceClient.Methods.say)),
      executor: executor,
      timing: .recorded
    )
    let budget = RetryBudget()
    let client = ProtocolClient(
      httpClient: transport,
      config: ProtocolClientConfig(
        host: "https://demo.connectrpc.com",
        interceptors: [{ _ in RetryInterceptor(policy: .defaults, budget: budget) }],
        timeout: .seconds(10)
      )
    )
    let eliza = Connectrpc_Eliza_V1_ElizaServiceClient(client: client)

    let answer = try await executor.lettingTimePass { try await eliza.say(.with { $0.sentence = "Hello" }) }

    XCTAssertEqual(answer.sentence, "Hello there.")
    XCTAssertGreaterThan(executor.now, .seconds(3))
    try await transport.finish()
  }
}

private func ConnectTesting_RecordingToTest_1() async throws {
  let config = ProtocolClientConfig(host: "https://demo.connectrpc.com")
  let cassette = try Cassette(
    configuration: .init(
      messages: .of(ElizaMethods.say, ElizaMethods.introduce),  // as JSON in the file; others are base64
      redaction: .init(fields: ["name"]),  // besides authorization, cookies, and -bin headers
      maximumSize: 16 << 20  // of what is kept in memory
    )
  )
  let transport = try CassetteTransport(cassette, over: NIOHTTPClient(), mode: .record)
  let client = ProtocolClient(httpClient: transport, config: config)
  try cassette.write(to: "/var/tmp/late-greeting.json")
  _ = config
  _ = cassette
  _ = transport
  _ = client
}

private func ConnectTesting_RecordingToTest_4() async throws {
  let cassette: Cassette = given()
  let cluster = SimulatedCluster(seed: 1)
  cluster.service("demo.connectrpc.com:443", servers: 1) { server in
    server.latency = .constant(.seconds(2))
    server.play(cassette)
  }
  _ = cassette
  _ = cluster
}
