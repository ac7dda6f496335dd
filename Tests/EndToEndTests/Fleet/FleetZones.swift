internal import Connect
internal import ConnectChannels
internal import ConnectInterceptors
internal import ConnectNIO
internal import LoopbackServer

/// Ten servers in three zones: four in a on 127.0.1.x, three in b on 127.0.2.x, three in c on 127.0.3.x.
struct FleetZones: Sendable {
  /// The zone of the client.
  static let own = "a"
  static let sizes = [("a", 4), ("b", 3), ("c", 3)]

  /// The addresses of each zone.
  let addresses: [String: [String]]
  private let zones: [String: String]

  /// Calls `body` with running servers, and stops these.
  ///
  /// - Parameter fleet: Where the servers of a zone run. The test may end the process.
  static func withZones<Result>(
    isSimple: Bool = false,
    in fleet: (String) -> Fleet,
    _ body: (FleetZones) async throws -> Result
  ) async throws -> Result {
    var addresses: [String: [String]] = [:]
    do {
      for (number, (zone, size)) in self.sizes.enumerated() {
        for index in 0..<size {
          let host = "127.0.\(1 + number).\(1 + index)"
          addresses[zone, default: []].append(try await fleet(zone).start(host, isSimple: isSimple))
        }
      }
      let result = try await body(FleetZones(addresses))
      await self.stop(addresses, in: fleet)
      return result
    } catch {
      await self.stop(addresses, in: fleet)
      throw error
    }
  }

  private static func stop(_ addresses: [String: [String]], in fleet: (String) -> Fleet) async {
    for (zone, addresses) in addresses where fleet(zone).process.isRunning {
      for address in addresses { try? await fleet(zone).stop(address) }
    }
  }

  private init(_ addresses: [String: [String]]) {
    self.addresses = addresses
    self.zones = Dictionary(
      addresses.flatMap { zone, addresses in addresses.map { ($0, zone) } },
      uniquingKeysWith: { first, _ in first }
    )
  }

  subscript(zone: String) -> [String] { self.addresses[zone] ?? [] }

  var all: [String] { Self.sizes.flatMap { self[$0.0] } }

  func endpoints() throws -> [Endpoint] {
    var endpoints = try FleetClient.endpoints(self.all)
    for (index, address) in self.all.enumerated() { endpoints[index].zone = self.zones[address] }
    return endpoints
  }

  /// The part of the calls that succeeded in a zone, from 0 to 1.
  func share(_ zone: String, of tally: FleetTally) -> Double {
    let count = self[zone].map { tally[$0] }.reduce(0, +)
    return Double(count) / Double(max(tally.successCount, 1))
  }

  /// The shares of the zones in percent, for people.
  func shares(_ tally: FleetTally) -> String {
    let shares = Self.sizes.map { zone, _ in
      "\(zone) \((self.share(zone, of: tally) * 1_000).rounded() / 10) %"
    }
    return shares.joined(separator: ", ")
  }

  /// Calls `body` with a client in zone a. The channel has gRPC's backoff: 1 s, times 1.6 with each failure.
  func run<Result>(
    _ balancing: BalancingPolicy,
    retries: Bool = true,
    _ body: (FleetClient) async throws -> Result
  ) async throws -> Result {
    // grpcio may answer calls that come behind its GOAWAY with `canceled`.
    let policy = RetryPolicy(
      maximumAttempts: 5,
      backoff: .init(base: .milliseconds(1)),
      codes: [.unavailable, .canceled],
      methods: { _ in true }
    )
    let budget = RetryBudget(maximumTokens: 1_000)
    let retry: InterceptorFactory = { _ in RetryInterceptor(policy: policy, budget: budget) }
    return try await FleetClient.run(
      endpoints: self.endpoints(),
      balancing,
      interceptors: retries ? [retry] : [],
      configure: { configuration in
        configuration.channel.zone = Self.own
        configuration.channel.backoff = .defaults
      },
      body
    )
  }
}
