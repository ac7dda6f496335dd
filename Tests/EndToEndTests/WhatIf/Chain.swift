internal import Connect
internal import ConnectChannels
internal import ConnectInterceptors
internal import Foundation
internal import LoopbackServer

/// grpcio servers in separate processes, each of which calls the next one, and a client of the first.
struct Chain: Sendable {
  /// From the first to the last.
  let servers: [PythonServer]
  private let fleetClient: FleetClient

  /// Calls `body` with a chain, and ends it.
  ///
  /// - Parameters:
  ///   - length: The number of servers.
  ///   - config: The service config of each caller, and of the client, for calls to the next server.
  static func run<Result>(
    of length: Int,
    config: String,
    _ body: (Chain) async throws -> Result
  ) async throws -> Result {
    var servers: [PythonServer] = []
    defer { for server in servers { server.kill() } }
    for _ in 0..<length {
      let next = try servers.last.map { ["127.0.0.1:\(try $0.port("port"))", config] } ?? []
      servers.append(try await PythonServer.start(.chain, arguments: next))
    }
    servers.reverse()
    let address = "127.0.0.1:\(try servers[0].port("port"))"
    let retrying: InterceptorFactory = { _ in
      // Makes no attempts but those of the service config.
      RetryInterceptor(policy: RetryPolicy(maximumAttempts: 1), budget: RetryBudget(maximumTokens: 1_000))
    }
    let chain = servers
    return try await FleetClient.run([address], interceptors: [retrying]) { fleetClient in
      fleetClient.resolver.update(try FleetClient.endpoints([address]), serviceConfig: config)
      _ = try await fleetClient.callUntil("the chain answers", inRowsOf: 1) { $0.failures.isEmpty }
      return try await body(Chain(servers: chain, fleetClient: fleetClient))
    }
  }

  /// Makes calls while this share of calls fails at the last server.
  ///
  /// - Returns: How many requests a call makes of the last server.
  func amplification(calls: Int, failing share: Double) async throws -> Double {
    guard let last = self.servers.last else { throw LoopbackServerError("no server") }
    try await last.command(["do": "behave", "share": share])
    let before = try await last.command(["do": "stats"]).started ?? 0
    let client = self.fleetClient
    let workers = 8
    await withTaskGroup(of: FleetTally.self) { group in
      for _ in 0..<workers { group.addTask { await client.call(calls / workers) } }
    }
    let after = try await last.command(["do": "stats"]).started ?? 0
    return Double(after - before) / Double(calls / workers * workers)
  }
}
