internal import Connect
internal import ConnectInterceptors
internal import ConnectNIO
internal import ConnectXDS
internal import Foundation
internal import Logging
internal import SwiftProtobuf
internal import Synchronization

/// A client of servers that a control plane names.
struct MeshClient: Sendable {
  /// What became of a call.
  struct Answer: Sendable {
    /// The server's name; nil if no server was reached.
    var server: String?
    var code: Code
    var error: ConnectError?
    /// The names in the client's certificate that the server saw.
    var identity: [String] = []
  }

  /// What servers put into their answers.
  private struct Body: Decodable {
    var server: String
    var identity: [String]
  }

  let xds: XDSClient
  let client: ProtocolClient

  /// Calls `body` with a client, and shuts that down.
  static func run<Result>(
    _ bootstrap: XDSBootstrap,
    target: String,
    configure: (inout NIOHTTPClient.Configuration) -> Void = { _ in },
    _ body: (MeshClient) async throws -> Result
  ) async throws -> Result {
    let xds = XDSClient(bootstrap: bootstrap)
    var configuration = NIOHTTPClient.Configuration(version: .http2Only)
    try configuration.resolve(through: xds, target: target)
    configure(&configuration)
    let httpClient = NIOHTTPClient(configuration: configuration)
    // Retries are those of routes: without one, a call is made once.
    let policy = RetryPolicy(maximumAttempts: 1, methods: { _ in true })
    let budget = RetryBudget(maximumTokens: 1_000_000)
    let host = target.split(separator: "/").last.map(String.init) ?? "mesh"
    var config = ProtocolClientConfig(
      host: "http://\(host)",
      networkProtocol: .grpc,
      codec: ProtoCodec(),
      interceptors: [{ _ in RetryInterceptor(policy: policy, budget: budget) }]
    )
    // gRPC makes up to five attempts.
    config.retries.maximumRetries = 4
    let client = MeshClient(xds: xds, client: ProtocolClient(httpClient: httpClient, config: config))
    do {
      let result = try await body(client)
      await httpClient.shutdown(within: .seconds(5))
      xds.shutDown()
      return result
    } catch {
      await httpClient.shutdown(within: .zero)
      xds.shutDown()
      throw error
    }
  }

  /// Makes a call.
  func call(
    _ path: String = "/mesh.Service/Call",
    _ metadata: [(String, String)] = [],
    timeout: Duration = .seconds(5)
  ) async -> Answer {
    let method = MethodSpec<Google_Protobuf_StringValue, Google_Protobuf_StringValue>(
      path: path,
      streamType: .unary
    )
    var headers = Headers()
    for (name, value) in metadata { headers.add(name: name, value: value) }
    let response = await self.client.unary(
      method,
      Google_Protobuf_StringValue(),
      options: CallOptions(headers: headers, timeout: timeout)
    )
    guard let message = response.message else {
      return Answer(
        server: response.trailers.first("x-server") ?? response.error?.metadata.first("x-server"),
        code: response.code,
        error: response.error
      )
    }
    guard let body = try? JSONDecoder().decode(Body.self, from: Data(message.value.utf8)) else {
      return Answer(server: "?", code: .dataLoss, error: nil)
    }
    return Answer(server: body.server, code: .ok, error: nil, identity: body.identity)
  }

  /// Makes calls, one after the other: how many each server answered.
  ///
  /// - Throws: If one fails.
  func share(_ count: Int, _ metadata: [(String, String)] = []) async throws -> [String: Int] {
    var shares: [String: Int] = [:]
    for _ in 0..<count {
      let answer = await self.call("/mesh.Service/Call", metadata)
      guard answer.code == .ok else {
        throw TestFailure("a call failed: \(String(reflecting: answer.error))")
      }
      shares[answer.server ?? "", default: 0] += 1
    }
    return shares
  }

  /// Makes rows of calls until all servers of a row are these.
  func waitForServers(
    _ expected: Set<String>,
    inRowsOf count: Int = 40,
    _ metadata: [(String, String)] = []
  ) async throws {
    var last = ""
    try await eventually("calls reach \(expected.sorted()), but \(last)") {
      var servers: Set<String> = []
      for _ in 0..<count {
        let answer = await self.call("/mesh.Service/Call", metadata)
        servers.insert(answer.server ?? "\(answer.code)")
        last = "\(servers.sorted()) \(answer.error?.message ?? "")"
      }
      return servers == expected
    }
  }
}
