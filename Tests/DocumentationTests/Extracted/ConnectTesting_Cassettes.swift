// Extracted from Sources/ConnectTesting/ConnectTesting.docc/Cassettes.md by `make generate`.

import Connect
import ConnectNIO
import ConnectTesting
import XCTest

final class RecordedGreetingTests: XCTestCase {
  func testGreeting() async throws {
    let transport = try CassetteTransport(forTest: "greeting", over: NIOHTTPClient())
    addTeardownBlock { try await transport.finish() }

    let client = ProtocolClient(
      httpClient: transport,
      config: ProtocolClientConfig(host: "https://demo.connectrpc.com")
    )
    let eliza = Connectrpc_Eliza_V1_ElizaServiceClient(client: client)
    let answer = try await eliza.say(.with { $0.sentence = "Hello" })
    XCTAssertEqual(answer.sentence, "Hello there...I'm glad you could drop by today.")
  }
}
