internal import Connect
internal import ConnectHTTP3
internal import ConnectNIO
internal import ConnectXDS
internal import Foundation
internal import LoopbackServer
internal import SwiftProtobuf
internal import Synchronization
internal import XCTest

/// Clusters over HTTP/3: the control plane is asked over HTTP/2, and its clusters have a server of aioquic.
final class MeshHTTP3Tests: XCTestCase {
  /// What `h3_server.py` says of itself.
  private struct QUICServer: Decodable {
    var h3: Int
    /// In PEM.
    var authority: String
  }

  /// Keeps the versions of HTTP of all attempts.
  private final class Versions: Interceptor, Sendable {
    let all = Mutex<[HTTPConnectionInfo.Version]>([])

    func unaryFunction() -> UnaryFunction {
      UnaryFunction(responseMetricsFunction: { metrics, proceed in
        if let version = metrics.connection?.version { self.all.withLock { $0.append(version) } }
        proceed(metrics)
      })
    }
  }

  /// Puts a cluster on the control plane whose server's certificate has to have this name.
  private func serve(_ mesh: Mesh, _ server: QUICServer, name: String) async throws {
    let locality = MeshResources.locality("a", ["127.0.0.1:\(server.h3)"])
    try await mesh.plane.put(.endpoints, MeshResources.endpoints("quic", [locality]))
    let security = MeshResources.clientTLS(names: [["exact": .string(name)]])
    try await mesh.plane.put(.cluster, MeshResources.cluster("quic", security))
    try await mesh.serve([MeshResources.route(to: "quic")])
  }

  private func withClient(
    _ bootstrap: XDSBootstrap,
    host: String,
    _ body: (ProtocolClient, Versions) async throws -> Void
  ) async throws {
    let xds = XDSClient(bootstrap: bootstrap)
    var configuration = NIOHTTPClient.Configuration(http3: .alone)
    try configuration.resolve(through: xds, target: Mesh.target)
    let httpClient = NIOHTTPClient(configuration: configuration)
    let versions = Versions()
    let client = ProtocolClient(
      httpClient: httpClient,
      config: ProtocolClientConfig(
        host: host,
        networkProtocol: .grpc,
        codec: ProtoCodec(),
        interceptors: [{ _ in versions }],
        timeout: .seconds(60)
      )
    )
    do {
      try await body(client, versions)
      await httpClient.shutdown(within: .seconds(5))
      xds.shutDown()
    } catch {
      await httpClient.shutdown(within: .zero)
      xds.shutDown()
      throw error
    }
  }

  func testCallsOverHTTP3() async throws {
    try await withFolder { folder in
      try await Mesh.run { mesh in
        let process = try await CommandProcess.start("../../ConnectHTTP3Tests/Servers/h3_server.py")
        let server = try process.announcement(as: QUICServer.self)
        var bootstrap = Mesh.bootstrap(mesh.address)
        try server.authority.write(toFile: "\(folder)/roots.pem", atomically: true, encoding: .utf8)
        bootstrap.certificateProviders["certificates"] = .init(roots: "\(folder)/roots.pem")
        try await self.serve(mesh, server, name: "localhost")
        try await self.withClient(bootstrap, host: "https://orders") { client, versions in
          func lookUp() async -> ResponseMessage<Connect_Test_V1_LookupResponse> {
            await client.unary(TestMethods.lookup, .with { $0.key = "it" })
          }
          let first = await lookUp()
          XCTAssertEqual(first.message?.value, "value of it", "\(String(reflecting: first.error))")
          XCTAssertEqual(versions.all.withLock { $0 }, [.http3])
          // The names that the control plane accepts hold over HTTP/3, too.
          try await self.serve(mesh, server, name: "other.example")
          var last: ConnectError?
          try await eventually("the name is refused, but \(String(reflecting: last))") {
            last = await lookUp().error
            return last?.code == .unavailable
          }
          let message = last?.message ?? ""
          XCTAssertTrue(message.contains("localhost"), message)
          try await self.serve(mesh, server, name: "localhost")
          try await eventually("the name is accepted again") { await lookUp().message != nil }
          XCTAssertEqual(Set(versions.all.withLock { $0 }), [.http3])
        }
        await process.stop()
      }
    }
  }
}
