// Extracted from Sources/ConnectChannels/ConnectChannels.docc/WritingABalancer.md by `make generate`.

import Connect
import ConnectChannels
import ConnectTesting
import XCTest

struct ZoneBalancer: LoadBalancer {
  let zone: String

  mutating func update(
    _ endpoints: [BalancedEndpoint],
    in context: inout BalancerContext
  ) -> BalancerDecision {
    let summary = EndpointSummary(endpoints)
    guard !summary.ready.isEmpty else { return .unready(summary) }
    let near = Set(endpoints.filter { $0.endpoint.zone == self.zone }.map(\.id))
    let nearAndReady = summary.ready.filter { near.contains($0) }
    return BalancerDecision(
      state: .ready,
      picker: RandomPicker(endpoints: nearAndReady.isEmpty ? summary.ready : nearAndReady),
      connect: summary.idle
    )
  }
}

struct RandomPicker: Picker {
  let endpoints: [EndpointID]

  func pick(_ call: borrowing PickContext) -> PickResult {
    var random = call.generator
    guard let endpoint = self.endpoints.randomElement(using: &random) else { return .wait }
    return .endpoint(endpoint)
  }
}

final class ZoneBalancerTests: XCTestCase {
  func testCallsLeaveTheZoneOnlyIfTheyMust() async throws {
    let near = try XCTUnwrap(EndpointAddress("10.0.1.1:443"))
    let far = try XCTUnwrap(EndpointAddress("10.0.2.1:443"))
    let executor = VirtualExecutor()
    let transport = InMemoryTransport(
      executor: executor,
      channel: ChannelConfiguration(
        resolver: StaticResolver([
          Endpoint(addresses: [near], zone: "eu-1a"), Endpoint(addresses: [far], zone: "eu-1b"),
        ]),
        balancing: BalancingPolicy(name: "nearby") { ZoneBalancer(zone: "eu-1a") }
      )
    )
    transport.onUnary(Connectrpc_Eliza_V1_ElizaServiceClient.Methods.say) { _, context in
      .with { $0.sentence = context.serverAddress?.description ?? "" }
    }
    let client = ProtocolClient(
      httpClient: transport,
      config: ProtocolClientConfig(host: "https://eliza.internal")
    )
    let eliza = Connectrpc_Eliza_V1_ElizaServiceClient(client: client)

    _ = try await eliza.say(.init())  // Until both are connected, the first one that is gets the calls.
    executor.runUntilIdle()
    for _ in 0..<20 {
      let response = try await eliza.say(.init())
      XCTAssertEqual(response.sentence, "10.0.1.1:443")
    }

    transport.refuseConnections(at: near)
    transport.goAway(at: near)
    let response = try await eliza.say(.init())
    XCTAssertEqual(response.sentence, "10.0.2.1:443")
  }
}

private func ConnectChannels_WritingABalancer_2() async throws {
  let nearby = BalancingPolicy(name: "nearby") { ZoneBalancer(zone: "eu-1a") }
  let channel = ChannelConfiguration(balancing: .outlierDetection(.defaults, of: nearby))
  _ = nearby
  _ = channel
}
