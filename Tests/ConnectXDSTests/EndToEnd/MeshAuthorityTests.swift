internal import Connect
internal import ConnectXDS
internal import XCTest

/// Authorities: another control plane for each (gRFC A47).
final class MeshAuthorityTests: XCTestCase {
  private static func name(_ type: String, _ name: String) -> String {
    "xdstp://east/envoy.config.\(type)/\(name)"
  }

  private static let listener = name("listener.v3.Listener", "orders")
  private static let routes = name("route.v3.RouteConfiguration", "routes")
  private static let cluster = name("cluster.v3.Cluster", "orders")
  private static let endpoints = name("endpoint.v3.ClusterLoadAssignment", "orders")

  /// The main control plane, and another one for the authority `east`, which has a listener, routes and a cluster in this zone.
  private func run(_ zone: String, _ body: (Mesh, XDSBootstrap) async throws -> Void) async throws {
    try await Mesh.run { mesh in
      var bootstrap = Mesh.bootstrap(mesh.address)
      let east = try await mesh.fallback.start()
      bootstrap.authorities["east"] = .init(servers: [.init(uri: east, credentials: .insecure)])
      try await self.serve(zone, mesh)
      try await mesh.fallback.put(
        .cluster,
        [
          "name": .string(Self.cluster), "type": "EDS",
          "eds_cluster_config": ["eds_config": MeshResources.ads, "service_name": .string(Self.endpoints)],
        ]
      )
      try await mesh.fallback.put(
        .route,
        MeshResources.routes(Self.routes, [MeshResources.route(to: Self.cluster)])
      )
      try await mesh.fallback.put(.listener, MeshResources.listener(Self.listener, routes: Self.routes))
      try await body(mesh, bootstrap)
    }
  }

  /// The endpoints of the authority `east`.
  private func serve(_ zone: String, _ mesh: Mesh) async throws {
    let locality = MeshResources.locality(zone, mesh.servers.zone(zone))
    try await mesh.fallback.put(.endpoints, MeshResources.endpoints(Self.endpoints, [locality]))
  }

  /// All of the target comes from the authority's control plane, and nothing from the main one.
  func testTargetOfAnAuthority() async throws {
    try await self.run("b") { mesh, bootstrap in
      try await mesh.serveClusters([MeshResources.route(to: "a")])
      try await MeshClient.run(bootstrap, target: "xds://east/orders") { client in
        try await client.waitForServers(mesh.names("b"))
        let east = try await mesh.fallback.records()
        XCTAssertEqual(east.summary["listener"]?.names, [Self.listener])
        XCTAssertEqual(east.summary["cluster"]?.names, [Self.cluster])
        let main = try await mesh.plane.records()
        XCTAssertEqual(main.records.count, 0, "\(main.records)")
        // Resources have the authority in the snapshot.
        let snapshot = await client.xds.snapshot()
        XCTAssertTrue(snapshot.resources.contains { $0.name == Self.endpoints && $0.status == .acknowledged })
      }
    }
  }

  /// Routes of the main control plane lead to a cluster of the authority. Either control plane may end: calls go on, and the other
  /// one still makes changes.
  func testRoutesToAClusterOfAnAuthority() async throws {
    try await self.run("b") { mesh, bootstrap in
      let east: JSON = ["prefix": "", "headers": [["name": "x-east", "present_match": true]]]
      try await mesh.serveClusters([
        MeshResources.route(east, to: Self.cluster), MeshResources.route(to: "a"),
      ])
      try await MeshClient.run(bootstrap, target: Mesh.target) { client in
        let header = [("x-east", "1")]
        try await client.waitForServers(mesh.names("a"))
        try await client.waitForServers(mesh.names("b"), header)
        let asked = try await mesh.plane.records().summary["cluster"]?.names
        XCTAssertEqual(asked, ["a"], "the main control plane is asked for its own cluster only")
        try await mesh.plane.stop()
        try await self.serve("c", mesh)
        try await client.waitForServers(mesh.names("c"), header)
        try await client.waitForServers(mesh.names("a"))
        try await mesh.plane.start()
        try await mesh.fallback.stop()
        let locality = MeshResources.locality("b", mesh.servers.zone("b"))
        try await mesh.plane.put(.endpoints, MeshResources.endpoints("a", [locality]))
        try await client.waitForServers(mesh.names("b"))
        try await client.waitForServers(mesh.names("c"), header)
      }
    }
  }

  func testUnknownAuthority() throws {
    let client = XDSClient(bootstrap: Mesh.bootstrap("127.0.0.1:1"))
    defer { client.shutDown() }
    XCTAssertThrowsError(try client.resolver(for: "xds://west/orders")) { error in
      XCTAssertEqual((error as? ConnectError)?.code, .invalidArgument)
      XCTAssertTrue((error as? ConnectError)?.message?.contains("west") == true, "\(error)")
    }
  }
}
