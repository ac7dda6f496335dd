import Connect
import ConnectChannels
import ConnectSimulation
import ConnectTesting
import LoopbackServer
import SwiftProtobuf
import XCTest

/// The example of the guide "A cluster in virtual time", for a shorter time.
final class LargeClusterTests: XCTestCase {
  func testACluster() async {
    let cluster = SimulatedCluster(seed: 7)
    let users = cluster.service("users.internal:443", servers: 50, zones: ["a", "b"]) { server in
      server.onUnary(TestMethods.echo) { request, _ in .with { $0.payload = request.payload } }
      server.latency = .logNormal(median: .milliseconds(3), p99: .milliseconds(40))
      server.concurrency = 64  // others wait in a queue
    }
    let client = ProtocolClient(
      httpClient: cluster.httpClient(ChannelConfiguration(balancing: .leastRequest())),
      config: ProtocolClientConfig(host: "https://users.internal", timeout: .seconds(1))
    )
    cluster.at(.seconds(1)) { users[3].freeze() }
    cluster.at(.seconds(2)) { users.rollingRestart(every: .milliseconds(100), drain: .seconds(1)) }
    cluster.at(.seconds(8)) { cluster.network.partition(zone: "b", for: .seconds(2)) }

    typealias EchoRequest = Connect_Test_V1_EchoRequest
    let report = await cluster.run(for: .seconds(12), load: .open(perSecond: 200)) { _ in
      _ = try await client.unary(TestMethods.echo, EchoRequest()).get()
    }
    XCTAssertEqual(report.violations, [])
    XCTAssertGreaterThan(report.successRate, 0.9)
    XCTAssertTrue(report.description.contains("servers"), report.description)
  }
}
