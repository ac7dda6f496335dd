import Connect
import ConnectTesting
import Synchronization
import XCTest

@testable import ConnectChannels

/// Endpoints of the parts of an aggregate.
final class EndpointClusterTests: XCTestCase {
  private let a = "10.0.0.1:80"
  private let policy = BalancingPolicy.priority([.init("one", .roundRobin), .init("two", .roundRobin)])

  private func endpoint(_ part: String, cluster: String?, security: String? = nil) throws -> Endpoint {
    var endpoint = try XCTUnwrap(Endpoint(self.a))
    endpoint.path = [part]
    endpoint.cluster = cluster
    endpoint.security = security
    return endpoint
  }

  func testIdentity() throws {
    let plain = try XCTUnwrap(Endpoint(self.a))
    let (blue, green) = (
      try self.endpoint("one", cluster: "blue"), try self.endpoint("two", cluster: "green")
    )
    XCTAssertNotEqual(plain.identity, blue.identity)
    XCTAssertNotEqual(blue.identity, green.identity)
    XCTAssertEqual(blue.identity, try self.endpoint("two", cluster: "blue").identity)
    XCTAssertEqual([blue, green, blue].withoutDuplicates(), [blue, green])
    var keyed = blue
    keyed.key = "pod"
    XCTAssertEqual(keyed.identity, .member(cluster: "blue", .key("pod")))
  }

  /// A server in two parts has two endpoints: each has its own connection.
  func testAServerInTwoParts() throws {
    let fleet = FakeFleet { $0.balancing = self.policy }
    fleet.resolver.update([
      try self.endpoint("one", cluster: "blue"), try self.endpoint("two", cluster: "green"),
    ])
    fleet.executor.runUntilIdle()
    fleet.call()
    XCTAssertEqual(fleet.network.clusters, ["blue"])
    XCTAssertEqual(fleet.snapshot.endpoints.count, 2)
    // The first part fails: the other one connects by itself.
    fleet.network.behaviours[self.a] = .timesOut
    fleet.run { fleet.network.connections[0].die() }
    fleet.advance(by: .seconds(11))
    fleet.network.behaviours[self.a] = nil
    fleet.advance(by: .seconds(120))
    XCTAssertTrue(fleet.network.clusters.contains("green"))
  }

  func testAnotherClusterOrSecurityNeedsAnotherConnection() throws {
    let fleet = FakeFleet { $0.balancing = self.policy }
    func resolve(_ cluster: String?, _ security: String?) throws -> Int {
      fleet.resolver.update([try self.endpoint("one", cluster: cluster, security: security)])
      fleet.executor.runUntilIdle()
      fleet.call()
      return fleet.network.connections.count
    }
    XCTAssertEqual(try resolve("blue", nil), 1)
    XCTAssertEqual(try resolve("blue", nil), 1)
    XCTAssertEqual(try resolve("green", nil), 2)
    XCTAssertEqual(try resolve("green", "mTLS"), 3)
    XCTAssertEqual(try resolve("green", "mTLS"), 3)
    XCTAssertEqual(try resolve(nil, "mTLS"), 4)
    XCTAssertEqual(fleet.network.clusters, ["blue", "green", "green", nil])
  }

  func testPickFirstKeepsClustersApart() throws {
    let fleet = FakeFleet()
    fleet.resolver.update([
      try self.endpoint("one", cluster: "blue"), try self.endpoint("one", cluster: "green"),
    ])
    fleet.call()
    XCTAssertEqual(fleet.snapshot.endpoints.count, 2)
  }

  func testTheClusterOfPicks() throws {
    final class Recorder: ChannelObserver {
      let clusters = Mutex<[String?]>([])
      func channel(to origin: Origin, did event: ChannelEvent) {
        if case .picked(_, _, let place) = event { self.clusters.withLock { $0.append(place.cluster) } }
      }
    }
    let recorder = Recorder()
    let fleet = FakeFleet {
      $0.balancing = self.policy
      $0.observer = recorder
    }
    fleet.resolver.update([try self.endpoint("one", cluster: "blue")])
    fleet.executor.runUntilIdle()
    fleet.call()
    XCTAssertEqual(recorder.clusters.withLock { $0 }, ["blue"])
  }
}
