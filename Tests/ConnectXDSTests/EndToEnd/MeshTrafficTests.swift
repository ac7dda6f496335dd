internal import Connect
internal import XCTest

/// Calls to ten servers of grpcio in three zones, led by a control plane, over sockets.
final class MeshTrafficTests: XCTestCase {
  func testAllServersGetCalls() async throws {
    try await Mesh.run { mesh in
      try await mesh.serveAllZones()
      try await mesh.withClient { client in
        try await client.waitForServers(mesh.names("a", "b", "c"), inRowsOf: 120)
      }
    }
  }

  /// The control plane takes the endpoints of a zone away, then the servers end. No call fails.
  func testDrainOfAZone() async throws {
    try await Mesh.run { mesh in
      try await mesh.serveAllZones()
      let failures = try await mesh.withClient { client in
        try await client.waitForServers(mesh.names("a", "b", "c"), inRowsOf: 120)
        let load = MeshLoad(client)
        try await load.wait(for: 50)
        let rest = ["b", "c"].map { MeshResources.locality($0, mesh.servers.zone($0)) }
        let draining = MeshResources.locality("a", mesh.servers.zone("a"), health: "DRAINING")
        try await mesh.plane.put(.endpoints, MeshResources.endpoints("orders", [draining] + rest))
        try await client.waitForServers(mesh.names("b", "c"), inRowsOf: 60)
        for name in mesh.names("a") { try await mesh.servers.stop(name, grace: 5) }
        try await load.wait(for: 50)
        return await load.stop()
      }
      XCTAssertEqual(failures.count, 0, "\(String(reflecting: failures.first))")
    }
  }

  /// 4,000 calls: a share of 10 % is within 2 points unless one in 40,000 runs is unlucky.
  func testShares() async throws {
    try await Mesh.run { mesh in
      try await mesh.serveClusters([MeshResources.route(to: [("a", 90), ("b", 10)])])
      try await mesh.withClient { client in
        let shares = try await client.share(4_000)
        let canary = shares.filter { $0.key.hasPrefix("b") }.values.reduce(0, +)
        XCTAssertEqual(shares.values.reduce(0, +), 4_000)
        XCTAssertTrue((320...480).contains(canary), "\(shares)")
        XCTAssertEqual(Set(shares.keys), mesh.names("a", "b"))
      }
    }
  }

  /// Localities of one priority share calls by their weights, whatever their numbers of servers.
  func testSharesOfLocalities() async throws {
    try await Mesh.run { mesh in
      let localities = [
        MeshResources.locality("a", mesh.servers.zone("a"), weight: 1),
        MeshResources.locality("b", mesh.servers.zone("b"), weight: 3),
      ]
      try await mesh.plane.put(.endpoints, MeshResources.endpoints("orders", localities))
      try await mesh.plane.put(.cluster, MeshResources.cluster("orders"))
      try await mesh.serve([MeshResources.route(to: "orders")])
      try await mesh.withClient { client in
        try await client.waitForServers(mesh.names("a", "b"), inRowsOf: 80)
        let shares = try await client.share(2_000)
        let first = shares.filter { $0.key.hasPrefix("a") }.values.reduce(0, +)
        XCTAssertTrue((420...580).contains(first), "\(shares)")
      }
    }
  }

  /// A priority whose servers end is left, and used again once they are back.
  func testFailover() async throws {
    try await Mesh.run { mesh in
      let localities = ["a", "b"].enumerated().map { index, zone in
        MeshResources.locality(zone, mesh.servers.zone(zone), priority: index)
      }
      try await mesh.plane.put(.endpoints, MeshResources.endpoints("orders", localities))
      try await mesh.plane.put(.cluster, MeshResources.cluster("orders"))
      try await mesh.serve([MeshResources.route(to: "orders")])
      try await mesh.withClient { client in
        try await client.waitForServers(mesh.names("a"))
        for name in mesh.names("a") { try await mesh.servers.stop(name) }
        try await client.waitForServers(mesh.names("b"))
        for name in mesh.names("a") { try await mesh.servers.start(name) }
        try await client.waitForServers(mesh.names("a"))
      }
    }
  }

  func testRoutesByHeadersAndPaths() async throws {
    try await Mesh.run { mesh in
      let tester: JSON = ["prefix": "", "headers": [["name": "x-tester", "string_match": ["exact": "yes"]]]]
      try await mesh.serveClusters([
        MeshResources.route(tester, to: "b"),
        MeshResources.route(["safe_regex": ["regex": "/mesh[.]Search/.*"]], to: "c"),
        MeshResources.route(["prefix": "/mesh."], to: "a"),
      ])
      try await mesh.withClient { client in
        try await client.waitForServers(mesh.names("a"))
        try await client.waitForServers(mesh.names("b"), [("x-tester", "yes")])
        let search = await client.call("/mesh.Search/Find")
        XCTAssertTrue(mesh.names("c").contains(search.server ?? ""), "\(search)")
        let other = await client.call("/other.Service/Call")
        XCTAssertEqual(other.code, .unavailable)
        XCTAssertNil(other.server)
      }
    }
  }

  /// A new cluster, then the routes to it, then the end of the old one: no call fails.
  func testMakeBeforeBreak() async throws {
    try await Mesh.run { mesh in
      try await mesh.serveClusters([MeshResources.route(to: "a")])
      let failures = try await mesh.withClient { client in
        try await client.waitForServers(mesh.names("a"))
        let load = MeshLoad(client)
        for zone in ["b", "c", "a", "b"] {
          try await load.wait(for: 30)
          try await mesh.serve([MeshResources.route(to: zone)])
          try await client.waitForServers(mesh.names(zone))
        }
        try await mesh.plane.remove(.cluster, "a")
        try await load.wait(for: 30)
        return await load.stop()
      }
      XCTAssertEqual(failures.count, 0, "\(String(reflecting: failures.first))")
    }
  }

  /// What a server's code says is not hidden by the mesh.
  func testCodesOfServers() async throws {
    try await Mesh.run { mesh in
      try await mesh.serveClusters([MeshResources.route(to: "a")])
      try await mesh.withClient { client in
        let answer = await client.call("/mesh.Service/Call", [("x-code", "5")])
        XCTAssertEqual(answer.code, .notFound)
        XCTAssertNotNil(answer.server)
      }
    }
  }
}
