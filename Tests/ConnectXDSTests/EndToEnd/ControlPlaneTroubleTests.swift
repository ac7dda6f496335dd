internal import Connect
internal import ConnectXDS
internal import XCTest

/// Control planes that end, come back, or send what cannot be used.
final class ControlPlaneTroubleTests: XCTestCase {
  /// Calls go on without a control plane. What it says when it is back counts.
  func testEndAndRestart() async throws {
    try await Mesh.run { mesh in
      try await mesh.serveClusters([MeshResources.route(to: "a")])
      let failures = try await mesh.withClient { client in
        try await client.waitForServers(mesh.names("a"))
        let load = MeshLoad(client)
        try await mesh.plane.stop()
        try await load.wait(for: 100)
        try await mesh.plane.start()
        try await mesh.serve([MeshResources.route(to: "b")])
        try await client.waitForServers(mesh.names("b"))
        return await load.stop()
      }
      XCTAssertEqual(failures.count, 0, "\(String(reflecting: failures.first))")
    }
  }

  /// The stream breaks; the next one begins with what is in use.
  func testBrokenStream() async throws {
    try await Mesh.run { mesh in
      try await mesh.serveClusters([MeshResources.route(to: "a")])
      try await mesh.withClient { client in
        try await client.waitForServers(mesh.names("a"))
        try await mesh.plane.close()
        try await mesh.serve([MeshResources.route(to: "b")])
        try await client.waitForServers(mesh.names("b"))
      }
      let records = try await mesh.plane.records()
      let second = records.records.filter { $0.stream == 2 }
      XCTAssertEqual(second.first?.nonce, "")
      XCTAssertTrue(
        second.contains { $0.type == "cluster" && $0.version != "" && $0.nonce == "" },
        "\(second)"
      )
    }
  }

  /// The first control plane cannot be reached: the second one is asked, until the first one is there (gRFC A71).
  func testFallback() async throws {
    try await Mesh.run { mesh in
      try await mesh.plane.stop()
      let address = try await mesh.fallback.start()
      try await mesh.serveAllZones(from: mesh.fallback)
      try await MeshClient.run(Mesh.bootstrap(mesh.address, address), target: Mesh.target) { client in
        try await client.waitForServers(mesh.names("a", "b", "c"), inRowsOf: 120)
        // The first one knows of one zone only.
        try await mesh.plane.set(.cluster, [MeshResources.cluster("orders")])
        let locality = MeshResources.locality("b", mesh.servers.zone("b"))
        try await mesh.plane.set(.endpoints, [MeshResources.endpoints("orders", [locality])])
        try await mesh.serve([MeshResources.route(to: "orders")])
        try await mesh.plane.start()
        try await client.waitForServers(mesh.names("b"))
        try await eventually("the fallback is left") { try await mesh.fallback.records().streams == 0 }
      }
    }
  }

  /// A control plane that ends every stream at once counts as one that cannot be reached.
  func testFallbackFromRefusals() async throws {
    try await Mesh.run { mesh in
      try await mesh.plane.refuse(14)
      let address = try await mesh.fallback.start()
      try await mesh.serveAllZones(from: mesh.fallback)
      try await MeshClient.run(Mesh.bootstrap(mesh.address, address), target: Mesh.target) { client in
        try await client.waitForServers(mesh.names("a", "b", "c"), inRowsOf: 120)
      }
    }
  }

  /// What cannot be used is refused with its reason, and the last good state stays in use.
  func testGarbage() async throws {
    try await Mesh.run { mesh in
      try await mesh.serveClusters([MeshResources.route(to: "a")])
      let failures = try await mesh.withClient { client in
        try await client.waitForServers(mesh.names("a"))
        let load = MeshLoad(client)
        let names: [MeshPlane.Kind: JSON] = [
          .listener: "orders", .route: "routes", .cluster: "a", .endpoints: "a",
        ]
        for (kind, name) in names {
          let before = try await mesh.plane.records().records.count
          // A byte that begins a field, and nothing behind it.
          try await mesh.plane.send(kind.rawValue, [["name": name, "base64": "Cg=="]])
          try await eventually("\(kind) is refused") {
            try await mesh.plane.records().records.dropFirst(before).contains {
              $0.type == kind.rawValue && $0.error?.isEmpty == false
            }
          }
        }
        try await load.wait(for: 50)
        return await load.stop()
      }
      XCTAssertEqual(failures.count, 0, "\(String(reflecting: failures.first))")
    }
  }

  /// A wrong resource beside a good one: the good one is used, the wrong one stays as it was.
  func testOneOfTwoIsWrong() async throws {
    try await Mesh.run { mesh in
      let shares = [("a", 1), ("b", 1)]
      try await mesh.serveClusters([MeshResources.route(to: shares)])
      try await mesh.withClient { client in
        try await client.waitForServers(mesh.names("a", "b"), inRowsOf: 80)
        // Of cluster b, the type is wrong. Cluster a gets other endpoints.
        let locality = MeshResources.locality("c", mesh.servers.zone("c"))
        try await mesh.plane.put(.endpoints, MeshResources.endpoints("others", [locality]))
        try await mesh.plane.put(
          .cluster,
          ["name": "b", "type": "STATIC"],
          [
            "name": "a", "type": "EDS",
            "eds_cluster_config": ["eds_config": MeshResources.ads, "service_name": "others"],
          ]
        )
        try await client.waitForServers(mesh.names("b", "c"), inRowsOf: 80)
        let snapshot = await client.xds.snapshot()
        let states = snapshot.resources.filter { $0.type.hasSuffix(".Cluster") }
        XCTAssertEqual(states.map(\.name), ["a", "b"])
        XCTAssertEqual(states.map(\.status), [.acknowledged, .refused])
        XCTAssertEqual(states.last?.refusal?.details.contains("type"), true, "\(states)")
        XCTAssertTrue(snapshot.json.contains("NACKED"), snapshot.json)
      }
    }
  }

  /// A listener that is deleted fails calls; one that comes back serves them.
  func testDeletedListener() async throws {
    try await Mesh.run { mesh in
      try await mesh.serveClusters([MeshResources.route(to: "a")])
      try await mesh.withClient { client in
        try await client.waitForServers(mesh.names("a"))
        try await mesh.plane.remove(.listener, "orders")
        var message = ""
        try await eventually("calls fail") {
          let answer = await client.call()
          message = answer.error?.message ?? ""
          return answer.code == .unavailable
        }
        XCTAssertTrue(message.contains("orders"), message)
        try await mesh.plane.put(.listener, MeshResources.listener("orders", routes: "routes"))
        try await client.waitForServers(mesh.names("a"))
      }
    }
  }

  /// Loads are reported to the control plane by cluster and locality.
  func testLoadReports() async throws {
    try await Mesh.run { mesh in
      try await mesh.plane.report(every: 0.1)
      try await mesh.serveAllZones(["lrs_server": ["self": [:]]])
      try await mesh.withClient { client in
        let shares = try await client.share(60)
        try await eventually("all calls are reported") {
          var sums: [String: Int] = [:]
          for report in try await mesh.plane.reports() {
            for cluster in report.clusterStats ?? [] where cluster.clusterName == "orders" {
              for locality in cluster.upstreamLocalityStats ?? [] {
                let count = Int(locality.totalSuccessfulRequests ?? "0") ?? 0
                sums[locality.locality?.zone ?? "", default: 0] += count
              }
            }
          }
          let expected = Dictionary(shares.map { ("\($0.key.prefix(1))", $0.value) }, uniquingKeysWith: +)
          return sums == expected
        }
      }
    }
  }
}
