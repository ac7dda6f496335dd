internal import Connect
internal import XCTest

/// Servers of one cluster that get unequal shares of the calls.
final class MeshWeightTests: XCTestCase {
  /// The share of calls that the first server of zone a gets.
  private func share(_ client: MeshClient, _ count: Int) async throws -> Double {
    Double(try await client.share(count)["a0"] ?? 0) / Double(count)
  }

  private func serve(_ mesh: Mesh, weights: [Int], _ policy: JSON) async throws {
    let servers = Array(mesh.servers.zone("a").prefix(2))
    let locality = MeshResources.locality("a", servers, weights: weights)
    try await mesh.plane.put(.endpoints, MeshResources.endpoints("orders", [locality]))
    try await mesh.plane.put(.cluster, MeshResources.cluster("orders", policy))
    try await mesh.serve([MeshResources.route(to: "orders")])
  }

  /// Without a hash policy each call has a random hash, so that shares are those of the ring (gRFC A42). With 4,096 entries and
  /// 3,000 calls, a share is within 6 points unless one in 100,000 runs is unlucky.
  func testWeightsOfARing() async throws {
    try await Mesh.run { mesh in
      let policy = MeshResources.policy("ring_hash", "RingHash", ["minimum_ring_size": 4096])
      try await self.serve(mesh, weights: [3, 1], policy)
      try await mesh.withClient { client in
        try await client.waitForServers(["a0", "a1"], inRowsOf: 80)
        let share = try await self.share(client, 3_000)
        XCTAssertEqual(share, 0.75, accuracy: 0.06)
        // Other weights of the same servers, without a new client.
        try await self.serve(mesh, weights: [1, 4], policy)
        var last = 0.0
        try await eventually("the share is 0.2, but it is \(last)") {
          last = try await self.share(client, 1_000)
          return abs(last - 0.2) < 0.06
        }
      }
    }
  }

  /// Servers say how busy they are; a server that is three times as busy gets a third of the calls of the other (gRFC A58).
  func testWeightsFromLoadReports() async throws {
    try await Mesh.run { mesh in
      let settings: JSON = ["blackout_period": "0s", "weight_update_period": "0.1s"]
      let policy = MeshResources.policy(
        "client_side_weighted_round_robin",
        "ClientSideWeightedRoundRobin",
        settings,
        byLocality: true
      )
      try await self.serve(mesh, weights: [], policy)
      try await mesh.withClient { client in
        for (first, second, expected) in [(0.1, 0.3, 0.75), (0.6, 0.2, 0.25)] {
          try await mesh.servers.report("a0", utilization: first)
          try await mesh.servers.report("a1", utilization: second)
          var last = 0.0
          try await eventually("the share is \(expected), but it is \(last)") {
            last = try await self.share(client, 200)
            return abs(last - expected) < 0.05
          }
        }
      }
    }
  }
}
