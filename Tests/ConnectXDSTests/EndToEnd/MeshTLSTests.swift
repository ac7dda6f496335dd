internal import Connect
internal import ConnectXDS
internal import XCTest

/// TLS of clusters as the control plane says (gRFC A29), and TLS to the control plane (gRFC A65).
final class MeshTLSTests: XCTestCase {
  private static func bootstrap(_ address: String, _ files: MeshServers.Certificates) -> XDSBootstrap {
    var bootstrap = Mesh.bootstrap(address)
    bootstrap.certificateProviders["certificates"] = XDSBootstrap.CertificateProvider(
      identity: .init(certificates: files.client, key: files.clientKey),
      roots: files.roots,
      refreshInterval: .milliseconds(50)
    )
    return bootstrap
  }

  /// One server that demands certificates, behind a cluster with these rules for its names.
  private func serve(_ mesh: Mesh, _ files: MeshServers.Certificates, _ names: [JSON]) async throws {
    let address = try await mesh.servers.start("secure", "127.0.1.9:0", tls: files.tls)
    let locality = MeshResources.locality("a", [address])
    try await mesh.plane.put(.endpoints, MeshResources.endpoints("secure", [locality]))
    try await mesh.plane.put(.cluster, MeshResources.cluster("secure", MeshResources.mutualTLS(names: names)))
    try await mesh.serve([MeshResources.route(to: "secure")])
  }

  /// The client's certificate is renewed; a connection that is made later has the new one, without a new client.
  func testRotatedFiles() async throws {
    try await withFolder { folder in
      try await Mesh.run { mesh in
        let files = try await mesh.servers.certificates(in: folder, client: "first.example")
        try await self.serve(mesh, files, [["exact": "server.mesh.example"]])
        try await MeshClient.run(Self.bootstrap(mesh.address, files), target: Mesh.target) { client in
          let first = await client.call()
          XCTAssertEqual(first.code, .ok, "\(String(reflecting: first.error))")
          XCTAssertTrue(first.identity.contains("first.example"), "\(first.identity)")
          _ = try await mesh.servers.certificates(in: folder, client: "second.example", isRenewal: true)
          try await eventually("a connection has the new certificate") {
            try await mesh.servers.stop("secure")
            try await mesh.servers.start("secure")
            // Connected again, or the time between attempts would grow.
            try await client.waitForServers(["secure"], inRowsOf: 1)
            return await client.call().identity.contains("second.example")
          }
        }
      }
    }
  }

  func testNameThatIsNotAccepted() async throws {
    try await withFolder { folder in
      try await Mesh.run { mesh in
        let files = try await mesh.servers.certificates(in: folder, client: "client.example")
        try await self.serve(mesh, files, [["exact": "other.example"], ["prefix": "mesh."]])
        try await MeshClient.run(Self.bootstrap(mesh.address, files), target: Mesh.target) { client in
          let answer = await client.call()
          XCTAssertEqual(answer.code, .unavailable, "\(answer)")
          XCTAssertEqual(answer.error?.message?.contains("server.mesh.example"), true, "\(answer)")
          // The control plane accepts the name: the same client connects.
          try await mesh.plane.put(
            .cluster,
            MeshResources.cluster("secure", MeshResources.mutualTLS(names: [["suffix": ".mesh.example"]]))
          )
          try await client.waitForServers(["secure"], inRowsOf: 1)
        }
      }
    }
  }

  /// A client of one server whose certificate has these names. It accepts what a first rule says, then what each other does.
  ///
  /// - Parameter rules: Each with whether the server's names pass.
  private func check(server: String, client: String, _ rules: [(JSON, Bool)]) async throws {
    try await withFolder { folder in
      try await Mesh.run { mesh in
        let files = try await mesh.servers.certificates(in: folder, client: client, server: [server])
        try await self.serve(mesh, files, [rules[0].0])
        try await MeshClient.run(Self.bootstrap(mesh.address, files), target: Mesh.target) { meshClient in
          for (rule, passes) in rules {
            try await mesh.plane.put(
              .cluster,
              MeshResources.cluster("secure", MeshResources.mutualTLS(names: [rule]))
            )
            var last: MeshClient.Answer?
            // A change is used a moment later.
            try await eventually("\(rule) passes: \(passes), but \(String(reflecting: last))") {
              let answer = await meshClient.call()
              last = answer
              guard passes else {
                return answer.code == .unavailable && answer.error?.message?.contains(server) == true
              }
              return answer.code == .ok && answer.identity.contains(client)
            }
          }
        }
      }
    }
  }

  /// Rules take turns, so that each counts: a rule that changes nothing would fail.
  func testSPIFFEIdentities() async throws {
    let server = "spiffe://mesh.example/ns/prod/sa/orders"
    try await self.check(
      server: server,
      client: "spiffe://mesh.example/ns/prod/sa/shop",
      [
        (["exact": .string(server)], true), (["exact": "spiffe://mesh.example/ns/prod/sa/other"], false),
        (["prefix": "spiffe://mesh.example/"], true), (["prefix": "spiffe://other.example/"], false),
        (["safe_regex": ["regex": "spiffe://mesh[.]example/ns/[a-z]+/sa/orders"]], true),
        // All of the name has to match.
        (["safe_regex": ["regex": "spiffe://mesh[.]example/ns"]], false),
        (["suffix": "/sa/orders"], true), (["contains": "/ns/test/"], false),
        (["exact": "SPIFFE://MESH.EXAMPLE/ns/prod/sa/ORDERS", "ignore_case": true], true),
        (["exact": "orders.mesh.example"], false),
      ]
    )
  }

  /// A star in the certificate stands for one label, for exact names only (gRFC A29).
  func testWildcardNames() async throws {
    try await self.check(
      server: "*.mesh.example",
      client: "shop.mesh.example",
      [
        (["exact": "orders.mesh.example"], true), (["exact": "eu.orders.mesh.example"], false),
        (["exact": "ORDERS.mesh.example"], true), (["exact": "mesh.example"], false),
        (["suffix": ".mesh.example"], true), (["prefix": "orders."], false),
      ]
    )
  }

  /// A server whose certificate is of another authority.
  func testUnknownAuthority() async throws {
    try await withFolder { folder in
      try await withFolder { other in
        try await Mesh.run { mesh in
          let files = try await mesh.servers.certificates(in: folder, client: "client.example")
          let others = try await mesh.servers.certificates(in: other, client: "client.example")
          try await self.serve(mesh, others, [])
          try await MeshClient.run(Self.bootstrap(mesh.address, files), target: Mesh.target) { client in
            let answer = await client.call()
            XCTAssertEqual(answer.code, .unavailable, "\(answer)")
          }
        }
      }
    }
  }

  /// The control plane itself demands a certificate. Without one, nothing is known.
  func testControlPlane() async throws {
    try await withFolder { folder in
      try await Mesh.run { mesh in
        let files = try await mesh.servers.certificates(in: folder, client: "client.example")
        try await mesh.serveAllZones()
        try await mesh.plane.stop()
        try await mesh.plane.start(tls: files.tls)
        var bootstrap = Mesh.bootstrap(mesh.address)
        bootstrap.servers[0].credentials = .tls(
          roots: files.roots,
          identity: .init(certificates: files.client, key: files.clientKey),
          refreshInterval: .seconds(60)
        )
        try await MeshClient.run(bootstrap, target: Mesh.target) { client in
          try await client.waitForServers(mesh.names("a", "b", "c"), inRowsOf: 120)
        }
        bootstrap.servers[0].credentials = .tls(
          roots: files.roots,
          identity: nil,
          refreshInterval: .seconds(60)
        )
        try await MeshClient.run(bootstrap, target: Mesh.target) { client in
          let answer = await client.call()
          XCTAssertEqual(answer.code, .unavailable, "\(answer)")
        }
      }
    }
  }
}
