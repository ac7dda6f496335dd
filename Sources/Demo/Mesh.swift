import Connect
import ConnectNIO
import ConnectXDS
import LoopbackServer
import SwiftProtobuf

/// Servers in two clusters. A control plane sends 90 % of the calls to the one and 10 % to the other, then all to the other.
struct Mesh {
  private static let callsInPhase = 200

  private let servers: [(name: String, server: LoopbackServer)]
  private let service: Connect_Test_V1_TestServiceClient

  static func run() async throws {
    let plane = ControlPlane()
    let planeServer = try await LoopbackServer.start()
    planeServer.serve(plane.method)
    let server = XDSBootstrap.Server(uri: "127.0.0.1:\(planeServer.port)", credentials: .insecure)
    let xds = XDSClient(bootstrap: XDSBootstrap(servers: [server], node: .init(id: "demo")))
    var configuration = NIOHTTPClient.Configuration(version: .http2Only)
    try configuration.resolve(through: xds, target: "xds:///orders")
    let httpClient = NIOHTTPClient(configuration: configuration)
    let config = ProtocolClientConfig(host: "http://orders", networkProtocol: .grpc, timeout: .seconds(10))
    var servers: [(name: String, server: LoopbackServer)] = []
    for name in ["stable 1", "stable 2", "canary"] {
      servers.append((name, try await LoopbackServer.start()))
    }
    let mesh = Mesh(
      servers: servers,
      service: .init(client: ProtocolClient(httpClient: httpClient, config: config))
    )
    defer { print("") }
    let result: Result<Void, any Error>
    do { result = .success(try await mesh.play(plane, xds)) } catch { result = .failure(error) }
    await httpClient.shutdown(within: .seconds(5))
    xds.shutDown()
    for server in servers.map(\.server) + [planeServer] { await server.stop() }
    try result.get()
  }

  private func play(_ plane: ControlPlane, _ xds: XDSClient) async throws {
    let ports = self.servers.map(\.server.port)
    try plane.add("stable", ports: Array(ports[..<2]))
    try plane.add("canary", ports: Array(ports[2...]))
    try plane.route(["stable": 90, "canary": 10])
    let first = try await self.call(Self.callsInPhase)
    try plane.route(["canary": 100])
    // The client hears of it while calls go on.
    let end = ContinuousClock.now + .seconds(10)
    while try await self.call(20)[2] < 20, ContinuousClock.now < end {}
    let second = try await self.call(Self.callsInPhase)
    print("  " + "".padded(to: 12) + "stable 90, canary 10".padded(to: 36) + "canary 100")
    for (index, member) in self.servers.enumerated() {
      let bars = [first[index], second[index]].map { count in
        (count == 0 ? "·" : "\(String(repeating: "█", count: (count + 9) / 10)) \(count)").padded(to: 36)
      }
      print("  " + Style.stage(member.name.padded(to: 12)) + bars.joined())
    }
    let kinds = await xds.snapshot().resources.map {
      "\($0.type.split(separator: ".").last ?? "") \($0.name)"
    }
    print("  no call failed; the client follows \(kinds.joined(separator: ", "))")
    try expect(first.allSatisfy { $0 > 0 }, "a server had no calls: \(first)")
    try expect(first[2] < Self.callsInPhase / 3, "the canary had \(first[2]) of \(Self.callsInPhase) calls")
    try expect(second[2] == Self.callsInPhase, "calls did not move: \(second)")
  }

  /// Makes calls, all of which have to succeed.
  ///
  /// - Returns: How many each server got.
  private func call(_ count: Int) async throws -> [Int] {
    let before = self.servers.map(\.server.requests.count)
    for _ in 0..<count {
      let response = await self.service.lookup(request: .with { $0.key = "question" })
      if let error = response.error { throw error }
    }
    return zip(self.servers, before).map { $0.server.requests.count - $1 }
  }
}
