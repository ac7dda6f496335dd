import Connect
import ConnectChannels
import ConnectNIO
import ConnectTesting
import LoopbackServer
import XCTest

/// Observers that a program gives to all of its clients.
final class ClientSystemObserverTests: XCTestCase {
  private struct Recorder: ChannelObserver {
    let name: String
    let record: Observed<[String]>

    func channel(to origin: Origin, did event: ChannelEvent) {
      if case .connectionOpened = event { self.record.update { $0.append(self.name) } }
    }
  }

  private func inNewProcess(_ body: () async throws -> Void) async rethrows {
    try await ClientRegistry.$current.withValue(ClientRegistry()) { try await body() }
  }

  func testAllClientsHaveTheObserverBesidesTheirOwn() async throws {
    try await self.inNewProcess {
      let record = Observed<[String]>([])
      try ClientSystem.bootstrap(
        interceptors: [],
        channelObserver: Recorder(name: "process", record: record)
      )
      let server = try await LoopbackServer.start(.plaintext)
      for own in [nil, Recorder(name: "own", record: record)] {
        var configuration = NIOHTTPClient.Configuration.defaults
        configuration.channel.observer = own
        let httpClient = NIOHTTPClient(configuration: configuration)
        let client = ProtocolClient(httpClient: httpClient, config: ProtocolClientConfig(host: server.url))
        _ = try await client.unary(TestMethods.echo, .init()).get()
        await httpClient.shutdown()
      }
      await server.stop()
      XCTAssertEqual(record.value, ["process", "own", "process"])
    }
  }

  func testTransportsAreClients() async throws {
    try await self.inNewProcess {
      let httpClient = NIOHTTPClient()
      XCTAssertThrowsError(try ClientSystem.bootstrap(interceptors: [])) { error in
        XCTAssertEqual((error as? ConnectError)?.code, .failedPrecondition)
      }
      await httpClient.shutdown()
    }
  }
}
