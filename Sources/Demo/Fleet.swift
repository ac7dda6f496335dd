import Connect
import ConnectChannels
import ConnectInterceptors
import ConnectNIO
import Logging
import LoopbackServer
import SwiftProtobuf

/// Servers behind one name, of which some are drained, one is killed, and new ones start while calls go on. Shows which server
/// handled which calls.
struct Fleet {
  private static let callsInPhase = 120  // a multiple of 3 x `callers`
  private static let callers = 8

  private let resolver = PushResolver()
  private let httpClient: NIOHTTPClient
  private let client: ProtocolClient
  private let origin: Origin

  private var servers: [Member] = []
  private var phases: [String] = []
  /// The number of requests of each server in each phase.
  private var served: [[Int]] = []
  private var calls = 0
  /// The errors of the calls that failed.
  private var errors: [ConnectError] = []

  private struct Member {
    var name: String
    var zone: String?
    var server: LoopbackServer
  }

  /// Servers come and go, and calls go to all of them.
  static func runChanges() async throws {
    try await Fleet(.roundRobin).run(zones: [nil, nil, nil]) { fleet in
      try await fleet.playChanges()
      fleet.show("")
      try fleet.checkChanges()
    }
  }

  /// A zone is drained and comes back, and calls stay in it as far as they can.
  static func runZones() async throws {
    try await Fleet(.zoneAware(of: .roundRobin), zone: "a").run(zones: ["a", "a", "b"]) { fleet in
      try await fleet.playZones()
      let crossed = fleet.served.sum(of: fleet.servers.map { $0.zone == "b" })
      fleet.show(", \(crossed) in the other zone")
      try fleet.checkZones()
    }
  }

  private func run(zones: [String?], _ play: (inout Fleet) async throws -> Void) async throws {
    var fleet = self
    defer { print("") }
    for zone in zones { try await fleet.add(zone) }
    fleet.publish(fleet.servers)
    do {
      try await play(&fleet)
    } catch {
      await fleet.stop()
      throw error
    }
    await fleet.stop()
  }

  private init(_ balancing: BalancingPolicy, zone: String? = nil) throws {
    let channel = ChannelConfiguration(
      resolver: self.resolver,
      balancing: balancing,
      zone: zone,
      backoff: .init(initial: .milliseconds(50))
    )
    self.httpClient = NIOHTTPClient(configuration: .init(version: .http2Only, channel: channel))
    var parts = ClientParts(logger: Logger(label: "fleet") { _ in SwiftLogNoOpLogHandler() })
    parts.isTraced = false
    parts.retryPolicy = RetryPolicy(backoff: Backoff(base: .milliseconds(5)))
    // Shared by all callers: there are few calls before the server is killed.
    parts.retryBudget = RetryBudget(maximumTokens: 100)
    self.client = ProtocolClient(
      httpClient: self.httpClient,
      config: ProtocolClientConfig(
        host: "http://fleet.test",
        networkProtocol: .grpc,
        interceptors: .recommended(for: parts),
        timeout: .seconds(10),
        waitForReady: true
      )
    )
    self.origin = try Origin("http://fleet.test")
  }

  private mutating func add(_ zone: String? = nil) async throws {
    let name = zone.map { "zone \($0), " } ?? "server "
    let server = try await LoopbackServer.start()
    self.servers.append(Member(name: "\(name)\(self.servers.count + 1)", zone: zone, server: server))
  }

  private func publish(_ servers: [Member]) {
    self.resolver.update(
      servers.compactMap { member in
        var endpoint = Endpoint("127.0.0.1:\(member.server.port)")
        endpoint?.zone = member.zone
        return endpoint
      }
    )
  }

  private func stop() async {
    await self.httpClient.shutdown(within: .seconds(5))
    for member in self.servers { await member.server.stop() }
  }

  // MARK: The days

  private mutating func playChanges() async throws {
    let all = self.servers
    await self.phase("all is well") {}
    await self.phase("server 2 is drained") { await all[1].server.drain() }
    await self.phase("server 3 is killed") { await all[2].server.stop() }
    try await self.add()
    let (publish, rest) = (self.publish, [all[0], self.servers[3]])
    await self.phase("server 4 comes", until: { $0[3] > 0 }) { publish(rest) }
  }

  private mutating func playZones() async throws {
    let all = self.servers
    await self.phase("all is well") {}
    await self.phase("server 2 is drained", until: { $0[2] > 0 && $0[0] > $0[2] }) {
      await all[1].server.drain()
    }
    await self.phase("zone a is drained", until: { $0[2] > 0 && $0[0] == 0 }) { await all[0].server.drain() }
    for _ in 0..<2 { try await self.add("a") }
    let (publish, rest) = (self.publish, [all[2], self.servers[3], self.servers[4]])
    await self.phase("two new in zone a", until: { $0[2] == 0 && $0[3] > 0 && $0[4] > 0 }) { publish(rest) }
    await self.phase("all is well again") {}
  }

  /// Makes calls, and runs `event` while they go on.
  ///
  /// - Parameter isSettled: Gets the requests of each server for the last calls. Clients learn of events a moment later, so more
  ///   calls follow until it returns true, for 10 seconds at most.
  private mutating func phase(
    _ name: String,
    until isSettled: ([Int]) -> Bool = { _ in true },
    _ event: @escaping @Sendable () async -> Void
  ) async {
    let before = self.servers.map(\.server.requests.count)
    self.errors += await withTaskGroup(of: [ConnectError].self) { group in
      let fleet = self
      group.addTask { await fleet.call(Self.callsInPhase) }
      let servers = self.servers.map(\.server)
      let some = before.reduce(0, +) + Self.callsInPhase / 4
      group.addTask {
        // In the middle of the calls.
        while servers.reduce(0, { $0 + $1.requests.count }) < some { await Task.yield() }
        await event()
        return []
      }
      return await group.reduce(into: []) { $0 += $1 }
    }
    self.calls += Self.callsInPhase
    let end = ContinuousClock.now + .seconds(10)
    var isOver = false
    while !isOver, ContinuousClock.now < end {
      let start = self.servers.map(\.server.requests.count)
      self.errors += await self.call(Self.callsInPhase / 3)
      self.calls += Self.callsInPhase / 3
      isOver = isSettled(zip(self.servers, start).map { $0.server.requests.count - $1 })
    }
    self.phases.append(name)
    self.served.append(zip(self.servers, before).map { $0.server.requests.count - $1 })
  }

  /// Makes so many calls, several at a time.
  ///
  /// - Returns: The errors of those that failed.
  private func call(_ count: Int) async -> [ConnectError] {
    let service = Connect_Test_V1_TestServiceClient(client: self.client)
    return await withTaskGroup(of: [ConnectError].self) { group in
      for _ in 0..<Self.callers {
        group.addTask {
          var errors: [ConnectError] = []
          for _ in 0..<count / Self.callers {
            let response = await service.lookup(request: .with { $0.key = "question" })
            if let error = response.error { errors.append(error) }
          }
          return errors
        }
      }
      return await group.reduce(into: []) { $0 += $1 }
    }
  }

  // MARK: What came of it

  /// - Parameter note: Is added to the last line.
  private func show(_ note: String) {
    print("  " + "".padded(to: 12) + self.phases.map { $0.padded(to: 21) }.joined())
    for (index, member) in self.servers.enumerated() {
      let cells = self.served.map { counts in
        let count = index < counts.count ? counts[index] : 0
        let bar = String(repeating: "█", count: min((count + 9) / 10, 14))
        return (count == 0 ? "·" : "\(bar) \(count)").padded(to: 21)
      }
      print("  " + Style.stage(member.name.padded(to: 12)) + cells.joined())
    }
    let attempts = self.served.joined().reduce(0, +)
    let failed = self.errors.count
    print("  \(self.calls) calls, \(failed) failed, \(max(attempts - self.calls, 0)) sent again\(note)")
  }

  private func checkErrors() throws {
    let first = self.errors.first.map { ", the first with \($0)" } ?? ""
    try expect(self.errors.isEmpty, "\(self.errors.count) calls failed\(first)")
  }

  private func checkChanges() throws {
    try self.checkErrors()
    try expect(self.served[0].allSatisfy { $0 > 0 }, "a server had no calls")
    try expect((self.served.last?[1] ?? 0) == 0, "the drained server had calls")
    try expect((self.served.last?[3] ?? 0) > 0, "the new server had no calls")
  }

  private func checkZones() throws {
    try self.checkErrors()
    try expect(self.served[0][2] == 0, "calls left the zone, though all was well")
    try expect(self.served[1][2] > 0, "no call left the zone, though half of it was gone")
    try expect(self.served[1][0] > self.served[1][2], "most calls left the zone, though half of it was there")
    try expect(self.served[2][2] > 0, "no call left the zone, though all of it was gone")
    let last = self.served.last ?? []
    try expect(last[2] == 0, "\(last[2]) calls did not come back to the zone")
  }
}

extension [[Int]] {
  /// The sum of the chosen columns. Rows may be shorter.
  fileprivate func sum(of columns: [Bool]) -> Int {
    self.reduce(0) { sum, row in zip(row, columns).reduce(sum) { $1.1 ? $0 + $1.0 : $0 } }
  }
}
