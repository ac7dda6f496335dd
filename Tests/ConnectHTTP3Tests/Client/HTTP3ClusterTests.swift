internal import Connect
internal import ConnectChannels
internal import ConnectHTTP3
internal import ConnectNIO
internal import LoopbackServer
internal import SwiftProtobuf
internal import Synchronization
internal import XCTest

/// Clusters over HTTP/3, each with TLS of its own.
final class HTTP3ClusterTests: XCTestCase {
  private typealias Configuration = NIOHTTPClient.Configuration

  /// Keeps what attempts say of their connections.
  private final class Infos: Interceptor, Sendable {
    private let all = Mutex<[HTTPConnectionInfo]>([])

    func unaryFunction() -> UnaryFunction {
      UnaryFunction(responseMetricsFunction: { metrics, proceed in
        if let info = metrics.connection { self.all.withLock { $0.append(info) } }
        proceed(metrics)
      })
    }

    /// Those since the last time.
    func take() -> [HTTPConnectionInfo] {
      self.all.withLock { all in
        defer { all = [] }
        return all
      }
    }
  }

  /// Calls with the header `cluster` go to the cluster of this name.
  private func withClient(
    _ clusters: [String: (PythonHTTP3Server, Configuration.TLS)],
    _ http3: HTTP3Support = .alone,
    _ body: (ProtocolClient, NIOHTTPClient, Infos) async throws -> Void
  ) async throws {
    var configuration = Configuration(tlsOfClusters: clusters.mapValues(\.1), http3: http3)
    configuration.channel.backoff = .init(initial: .milliseconds(5), maximum: .milliseconds(20))
    configuration.channel.routing = Routing(
      routes: clusters.keys.map { Route(RouteMatch(headers: [HeaderMatch("cluster", .exact($0))]), to: $0) },
      clusters: try clusters.mapValues { server, _ in
        Cluster(endpoints: [try XCTUnwrap(Endpoint("127.0.0.1:\(server.port(.aioquic))"))])
      }
    )
    let infos = Infos()
    let httpClient = NIOHTTPClient(configuration: configuration)
    let client = ProtocolClient(
      httpClient: httpClient,
      config: ProtocolClientConfig(
        host: "https://localhost:1",
        networkProtocol: .connect,
        codec: ProtoCodec(),
        interceptors: [{ _ in infos }],
        timeout: .seconds(60)
      )
    )
    do {
      try await body(client, httpClient, infos)
      await httpClient.shutdown(within: .seconds(5))
    } catch {
      await httpClient.shutdown(within: .zero)
      throw error
    }
  }

  private func lookUp(
    _ client: ProtocolClient,
    in cluster: String
  ) async -> ResponseMessage<Connect_Test_V1_LookupResponse> {
    let options = CallOptions(headers: ["cluster": [cluster]])
    return await client.unary(TestMethods.lookup, .with { $0.key = "it" }, options: options)
  }

  private func tls(_ server: PythonHTTP3Server) -> Configuration.TLS {
    Configuration.TLS(trustRoots: .pemBytes(server.authority))
  }

  func testEachClusterHasItsOwnTrust() async throws {
    let (blue, green) = (try await PythonHTTP3Server.shared(), try await PythonHTTP3Server())
    defer { green.kill() }
    var otherName = self.tls(green)
    otherName.serverName = "other.example"
    try await self.withClient([
      "blue": (blue, self.tls(blue)), "green": (green, self.tls(green)), "wrong": (green, self.tls(blue)),
      "name": (green, otherName),
    ]) { client, _, infos in
      for cluster in ["blue", "green", "blue"] {
        let found = await self.lookUp(client, in: cluster)
        XCTAssertEqual(found.message?.value, "value of it", "\(String(describing: found.error))")
        XCTAssertEqual(infos.take().map(\.version), [.http3])
      }
      for (cluster, words) in [("wrong", "unknown CA"), ("name", "'other.example'")] {
        let error = await self.lookUp(client, in: cluster).error
        let message = error?.message ?? ""
        XCTAssertEqual(error?.code, .unavailable, cluster)
        XCTAssertTrue(message.contains(words), message)
        XCTAssertTrue(message.contains("the cluster \"\(cluster)\" of https://localhost:1"), message)
        XCTAssertFalse(message.contains("tlsOfClusters"), message)
      }
    }
  }

  /// A cluster uses no session of another one, even with the same server.
  func testEarlyDataOfTwoClusters() async throws {
    let server = try await PythonHTTP3Server.shared()
    let http3 = HTTP3Support.alone(HTTP3Configuration(usesEarlyData: true))
    let clusters = ["blue": (server, self.tls(server)), "green": (server, self.tls(server))]
    try await self.withClient(clusters, http3) { client, httpClient, infos in
      func isEarly(_ cluster: String) async -> Bool? {
        _ = infos.take()
        let found = await self.lookUp(client, in: cluster)
        XCTAssertEqual(found.message?.value, "value of it", "\(String(describing: found.error))")
        return infos.take().last?.isEarlyData
      }
      /// The server ends the connection of the cluster. The call fails, as the server's answer is no message.
      func endConnection(of cluster: String) async throws {
        let method = MethodSpec<Connect_Test_V1_LookupRequest, Connect_Test_V1_LookupResponse>(
          path: "/script/end",
          streamType: .unary
        )
        let options = CallOptions(headers: ["cluster": [cluster]])
        let response = await client.unary(method, .init(), options: options)
        XCTAssertNotNil(response.error)
        try await httpClient.waitUntilIdle(cluster)
      }
      var answers = [await isEarly("blue")]
      try await endConnection(of: "blue")
      answers.append(await isEarly("blue"))
      // With a further response, there is a ticket of the other cluster again.
      _ = await isEarly("blue")
      answers.append(await isEarly("green"))
      try await endConnection(of: "green")
      answers.append(await isEarly("green"))
      XCTAssertEqual(answers, [false, true, false, true])
    }
  }
}
