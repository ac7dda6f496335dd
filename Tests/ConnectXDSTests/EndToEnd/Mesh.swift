internal import ConnectXDS
internal import Foundation

/// Ten servers in three zones, and a control plane, in processes of their own for one test.
struct Mesh: Sendable {
  static let target = "xds:///orders"

  private(set) var servers: MeshServers
  let plane: MeshPlane
  /// Another control plane in the same process, which is not started.
  let fallback: MeshPlane
  /// Where the control plane listens.
  let address: String

  /// Calls `body` with a mesh, and ends its processes.
  static func run<Result>(_ body: (Mesh) async throws -> Result) async throws -> Result {
    async let servers = CommandProcess.start("mesh_servers.py")
    async let planes = CommandProcess.start("control_plane.py")
    var mesh = try await Mesh(servers: MeshServers(process: servers), planes: planes)
    do {
      try await mesh.servers.startAll()
      let result = try await body(mesh)
      await mesh.stop()
      return result
    } catch {
      await mesh.stop()
      throw error
    }
  }

  private init(servers: MeshServers, planes: CommandProcess) async throws {
    self.servers = servers
    self.plane = MeshPlane(process: planes, name: "main")
    self.fallback = MeshPlane(process: planes, name: "fallback")
    self.address = try await self.plane.start()
  }

  private func stop() async {
    await self.servers.process.stop()
    await self.plane.process.stop()
  }

  /// For a client of the control planes at these addresses.
  static func bootstrap(_ addresses: String...) -> XDSBootstrap {
    XDSBootstrap(
      servers: addresses.map { .init(uri: $0, credentials: .insecure) },
      node: .init(id: "test", cluster: "tests", locality: XDSLocality(region: "r", zone: "a"))
    )
  }

  /// Calls `body` with a client of the control plane.
  func withClient<Result>(_ body: (MeshClient) async throws -> Result) async throws -> Result {
    try await MeshClient.run(Self.bootstrap(self.address), target: Self.target, body)
  }

  // MARK: MeshResources

  /// A listener with routes that have a resource of their own.
  func serve(_ routes: [JSON], from plane: MeshPlane? = nil) async throws {
    let plane = plane ?? self.plane
    try await plane.put(.route, MeshResources.routes("routes", routes))
    try await plane.put(.listener, MeshResources.listener("orders", routes: "routes"))
  }

  /// One cluster with one locality for each zone, all of the same priority.
  func serveAllZones(from plane: MeshPlane? = nil, _ more: JSON = [:]) async throws {
    let plane = plane ?? self.plane
    let localities = ["a", "b", "c"].map { MeshResources.locality($0, self.servers.zone($0)) }
    try await plane.put(.endpoints, MeshResources.endpoints("orders", localities))
    try await plane.put(.cluster, MeshResources.cluster("orders", more))
    try await self.serve([MeshResources.route(to: "orders")], from: plane)
  }

  /// A cluster for each zone, with its name.
  func serveClusters(_ routes: [JSON]) async throws {
    for zone in ["a", "b", "c"] {
      let locality = MeshResources.locality(zone, self.servers.zone(zone))
      try await self.plane.put(.endpoints, MeshResources.endpoints(zone, [locality]))
      try await self.plane.put(.cluster, MeshResources.cluster(zone))
    }
    try await self.serve(routes)
  }

  /// Names of the servers of zones.
  func names(_ zones: String...) -> Set<String> {
    Set(self.servers.addresses.keys.filter { name in zones.contains { name.hasPrefix($0) } })
  }
}

/// A folder for one test.
func withFolder<Result>(_ body: (String) async throws -> Result) async throws -> Result {
  let folder = FileManager.default.temporaryDirectory.appending(path: "connect-xds-\(UUID().uuidString)")
  try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(at: folder) }
  return try await body(folder.path())
}
