import Connect
import ConnectChannels
import ConnectInterceptors
import ConnectNIO
import Logging
import LoopbackServer
import SwiftProtobuf

/// Three servers behind one name. While calls go on, one server is drained, one is killed, and a new one starts. Shows
/// which server handled which calls.
struct Fleet {
  private static let callsInPhase = 120
  private static let callers = 8

  private let resolver = PushResolver()
  private let httpClient: NIOHTTPClient
  private let client: ProtocolClient
  private let origin: Origin

  /// The number of requests each server had served at the end of each phase.
  private var servers: [(name: String, server: LoopbackServer)] = []
  private var phases: [String] = []
  private var served: [[Int]] = []
  private var failed = 0

  static func run() async throws {
    var fleet = try Fleet()
    defer { print("") }
    for _ in 0..<3 { try await fleet.add() }
    fleet.publish(fleet.servers)
    do {
      try await fleet.play()
    } catch {
      await fleet.stop()
      throw error
    }
    await fleet.stop()
  }

  private init() throws {
    let channel = ChannelConfiguration(
      resolver: self.resolver,
      balancing: .roundRobin,
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

  private mutating func add() async throws {
    self.servers.append(("server \(self.servers.count + 1)", try await LoopbackServer.start()))
  }

  private func publish(_ servers: [(name: String, server: LoopbackServer)]) {
    self.resolver.update(servers.compactMap { Endpoint("127.0.0.1:\($0.server.port)") })
  }

  private func stop() async {
    await self.httpClient.shutdown(within: .seconds(5))
    for (_, server) in self.servers { await server.stop() }
  }

  // MARK: The day

  private mutating func play() async throws {
    let all = self.servers
    await self.phase("all is well") {}
    await self.phase("server 2 is drained") { await all[1].server.drain() }
    await self.phase("server 3 is killed") { await all[2].server.stop() }
    try await self.add()
    let (publish, rest) = (self.publish, [all[0], self.servers[3]])
    await self.phase("server 4 comes") { publish(rest) }
    self.show()
    try self.check()
  }

  /// Makes calls, and runs `event` while they go on.
  private mutating func phase(_ name: String, _ event: @escaping @Sendable () async -> Void) async {
    let before = self.servers.map(\.server.requests.count)
    let service = Connect_Test_V1_TestServiceClient(client: self.client)
    self.failed += await withTaskGroup(of: Int.self) { group in
      for _ in 0..<Self.callers {
        group.addTask {
          var failed = 0
          for _ in 0..<Self.callsInPhase / Self.callers {
            let response = await service.lookup(request: .with { $0.key = "question" })
            if response.error != nil { failed += 1 }
          }
          return failed
        }
      }
      let servers = self.servers.map(\.server)
      let some = before.reduce(0, +) + Self.callsInPhase / 4
      group.addTask {
        // In the middle of the calls.
        while servers.reduce(0, { $0 + $1.requests.count }) < some { await Task.yield() }
        await event()
        return 0
      }
      return await group.reduce(0, +)
    }
    self.phases.append(name)
    let now = self.servers.map(\.server.requests.count)
    self.served.append(now.indices.map { now[$0] - ($0 < before.count ? before[$0] : 0) })
  }

  // MARK: What came of it

  private func show() {
    print("  " + "".padded(to: 12) + self.phases.map { $0.padded(to: 24) }.joined())
    for (index, (name, _)) in self.servers.enumerated() {
      let cells = self.served.map { counts in
        let count = index < counts.count ? counts[index] : 0
        let bar = String(repeating: "█", count: (count + 9) / 10)
        return (count == 0 ? "·" : "\(bar) \(count)").padded(to: 24)
      }
      print("  " + Style.stage(name.padded(to: 12)) + cells.joined())
    }
    let calls = self.phases.count * Self.callsInPhase
    let attempts = self.served.joined().reduce(0, +)
    print("  \(calls) calls, \(self.failed) failed, \(max(attempts - calls, 0)) sent again")
  }

  private func check() throws {
    try expect(self.failed == 0, "\(self.failed) calls failed")
    try expect(self.served[0].allSatisfy { $0 > 0 }, "a server had no calls")
    try expect((self.served.last?[1] ?? 0) == 0, "the drained server had calls")
    try expect((self.served.last?[3] ?? 0) > 0, "the new server had no calls")
  }
}
