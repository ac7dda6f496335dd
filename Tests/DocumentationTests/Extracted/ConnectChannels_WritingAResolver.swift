// Extracted from Sources/ConnectChannels/ConnectChannels.docc/WritingAResolver.md by `make generate`.

import Connect
import ConnectChannels
import ConnectTesting
import XCTest

/// Knows which servers a service has.
protocol ServerRegistry: Sendable {
  func addresses(of service: String) async throws -> [String]
}

extension ServerRegistry {
  var resolver: PollingResolver {
    PollingResolver { origin, _, report in
      Task {
        do {
          let addresses = try await self.addresses(of: origin.host)
          let endpoints = addresses.compactMap { Endpoint($0) }
          report(.success(ResolverUpdate(endpoints: endpoints, timeToLive: .seconds(60))))
        } catch {
          let message = "the registry has no answer"
          report(.failure(ConnectError(code: .unavailable, message: message, exception: error)))
        }
      }
    }
  }
}

final class ServerRegistryTests: XCTestCase {
  struct TwoServers: ServerRegistry {
    func addresses(of service: String) async throws -> [String] { ["10.0.0.1:443", "10.0.0.2:443"] }
  }

  func testCallsGoToBothServers() async throws {
    let transport = InMemoryTransport(
      channel: ChannelConfiguration(resolver: TwoServers().resolver, balancing: .roundRobin)
    )
    transport.onUnary(Connectrpc_Eliza_V1_ElizaServiceClient.Methods.say) { _, context in
      .with { $0.sentence = context.serverAddress?.description ?? "" }
    }
    let client = ProtocolClient(
      httpClient: transport,
      config: ProtocolClientConfig(host: "https://eliza.internal")
    )
    let eliza = Connectrpc_Eliza_V1_ElizaServiceClient(client: client)

    var servers: Set<String> = []
    for _ in 0..<1_000 where servers.count < 2 {
      servers.insert(try await eliza.say(.init()).sentence)
    }
    XCTAssertEqual(servers, ["10.0.0.1:443", "10.0.0.2:443"])
  }
}

private func ConnectChannels_WritingAResolver_3() async throws {
  /// Feeds a resolver from a stream of lists, such as the watch of a registry.
  func follow(_ changes: some AsyncSequence<[String], Never>, with resolver: PushResolver) async {
    for await addresses in changes {
      resolver.update(addresses.compactMap { Endpoint($0) })
    }
  }
}
