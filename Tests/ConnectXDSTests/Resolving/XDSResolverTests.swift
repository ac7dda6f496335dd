import Connect
import ConnectChannels
import ConnectTesting
import XCTest

@testable import ConnectXDS

final class XDSResolverTests: XCTestCase {
  private let resources = FakeResources()
  private let reports = LoadReportsLog()
  private let servers = Servers()
  private lazy var targets = self.makeTargets()
  private let origin = Origin(scheme: .http, host: "orders", port: 80)

  /// Where clusters come from.
  private final class Servers: @unchecked Sendable {
    var current = XDSBootstrap.Server(uri: "s", credentials: .insecure)
  }

  private final class Channel: @unchecked Sendable {
    var answers: [Result<ResolverUpdate, ConnectError>] = []
    var watch: (any ResolverWatch)?
  }

  private func makeTargets() -> XDSTargets {
    let executor = self.resources.executor
    let servers = self.servers
    let environment = DependencyWatch.Environment(
      executor: executor,
      source: self.resources,
      resolver: StaticResolver([]),
      server: { _ in servers.current }
    )
    let reports = self.reports
    let reporters = LoadReporters(.init(), on: executor, random: SeededRandom(seed: 1)) { server, handle in
      reports.open(server, handle)
    }
    return XDSTargets(environment, reporters: reporters)
  }

  private func resolve(_ name: String = "orders") throws -> Channel {
    let target = try ListenerName(authority: nil, name: name, XDSBootstrap(servers: []))
    let resolver = XDSResolver(owner: nil, targets: self.targets, target: target)
    let channel = Channel()
    // As from another event loop.
    channel.watch = resolver.watch(self.origin, on: VirtualExecutor()) { channel.answers.append($0) }
    self.resources.executor.runUntilIdle()
    return channel
  }

  private func clusters(_ channel: Channel) -> [String: [String]]? {
    self.resources.executor.sync {
      guard case .success(let update) = channel.answers.last else { return nil }
      return update.routing?.clusters.mapValues { $0.endpoints.map(\.description) }
    }
  }

  private func serve() {
    self.resources.set("orders", .listener(.inline(.to("a"))))
    self.resources.set("a", .cluster(.endpoints("ea", reportsLoads: true)))
    self.resources.set("ea", .endpoints(.at("10.0.0.1:1")))
  }

  func testChannelsShareAWatch() throws {
    let (one, two) = (try self.resolve(), try self.resolve())
    self.serve()
    XCTAssertEqual(self.clusters(one), ["a": ["10.0.0.1:1"]])
    XCTAssertEqual(self.clusters(two), ["a": ["10.0.0.1:1"]])
    let three = try self.resolve()
    XCTAssertEqual(self.clusters(three), ["a": ["10.0.0.1:1"]], "at once")
    one.watch?.cancel()
    three.watch?.cancel()
    self.resources.set("ea", .endpoints(.at("10.0.0.2:1")))
    XCTAssertEqual(self.clusters(one), ["a": ["10.0.0.1:1"]])
    XCTAssertEqual(self.clusters(two), ["a": ["10.0.0.2:1"]])
    two.watch?.cancel()
    self.resources.executor.runUntilIdle()
    XCTAssertEqual(self.resources.watched, [])
  }

  func testAWatchThatIsCancelledAtOnce() throws {
    let target = try ListenerName(authority: nil, name: "orders", XDSBootstrap(servers: []))
    self.resources.executor.sync {
      XDSResolver(owner: nil, targets: self.targets, target: target).watch(
        self.origin,
        on: self.resources.executor
      ) { _ in }
      .cancel()
    }
    self.resources.executor.runUntilIdle()
    XCTAssertEqual(self.resources.watched, [])
  }

  /// A failure would have channels keep routes that were deleted.
  func testADeletedListenerRefusesCalls() throws {
    let channel = try self.resolve()
    self.serve()
    self.resources.remove(.listener, "orders")
    try self.resources.executor.sync {
      let routing = try XCTUnwrap(try channel.answers.last?.get().routing)
      XCTAssertEqual(routing, Routing(routes: [Route(refusing: "orders does not exist")], clusters: [:]))
    }
    self.serve()
    XCTAssertEqual(self.clusters(channel), ["a": ["10.0.0.1:1"]])
  }

  func testAListenerThatWasNeverThere() throws {
    let channel = try self.resolve()
    self.resources.remove(.listener, "orders")
    try self.resources.executor.sync {
      XCTAssertThrowsError(try channel.answers.last?.get()) { error in
        XCTAssertEqual((error as? ConnectError)?.code, .unavailable)
        XCTAssertEqual((error as? ConnectError)?.message, "orders does not exist")
      }
    }
  }

  /// Each channel holds its own clusters.
  func testClustersThatCallsHoldStay() throws {
    let (one, two) = (try self.resolve(), try self.resolve())
    self.serve()
    for channel in [one, two] { channel.watch?.keepClusters(["a"]) }
    self.resources.set("b", .cluster(.endpoints("eb")))
    self.resources.set("orders", .listener(.inline(.to("b"))))
    self.resources.set("b", .cluster(.endpoints("eb")))
    self.resources.set("eb", .endpoints(.at("10.0.0.2:1")))
    XCTAssertEqual(self.clusters(one), ["a": ["10.0.0.1:1"], "b": ["10.0.0.2:1"]])
    one.watch?.keepClusters(["b"])
    self.resources.set("ea", .endpoints(.at("10.0.0.9:1")))
    XCTAssertEqual(self.clusters(two), ["a": ["10.0.0.9:1"], "b": ["10.0.0.2:1"]])
    let table = self.targets.table(of: self.servers.current)
    XCTAssertEqual(self.resources.executor.sync { table.reported.map(\.cluster) }, ["a"])
    self.resources.remove(.listener, "orders")
    XCTAssertEqual(self.clusters(two), ["a": ["10.0.0.9:1"], "b": ["10.0.0.2:1"]], "for calls that run")
    two.watch?.cancel()
    self.resources.executor.runUntilIdle()
    XCTAssertEqual(self.clusters(one), ["b": ["10.0.0.2:1"]])
    one.watch?.keepClusters([])
    self.resources.executor.runUntilIdle()
    XCTAssertEqual(self.clusters(one), [:])
    XCTAssertEqual(self.resources.executor.sync { table.reported.map(\.cluster) }, [])
    one.watch?.cancel()
  }

  func testStatisticsAreSharedAndEnd() throws {
    let one = try self.resolve()
    let two = try self.resolve("other")
    self.serve()
    self.resources.set("other", .listener(.inline(.to("a"))))
    self.resources.executor.sync {
      let policies = [one, two].map { try? $0.answers.last?.get().routing?.clusters["a"]?.balancing }
      XCTAssertNotNil(policies[0] as Any?)
      XCTAssertEqual(policies[0], policies[1], "the same counts")
      XCTAssertEqual(
        self.targets.table(of: self.servers.current).reported,
        [.init(cluster: "a", service: "ea")]
      )
      XCTAssertEqual(self.reports.opened, ["s"], "one stream for both")
    }
    one.watch?.cancel()
    two.watch?.cancel()
    self.resources.executor.runUntilIdle()
    self.resources.executor.sync {
      XCTAssertEqual(self.targets.table(of: self.servers.current).reported, [])
      XCTAssertEqual(self.reports.cancelled, 1)
    }
  }

  /// Counts are neither lost nor reported twice.
  func testReportsGoToTheControlPlaneThatTheClusterComesFrom() throws {
    let (one, two) = (try self.resolve(), try self.resolve("other"))
    self.serve()
    self.resources.set("other", .listener(.inline(.to("a"))))
    func balancing(_ channel: Channel) -> BalancingPolicy? {
      self.resources.executor.sync { try? channel.answers.last?.get().routing?.clusters["a"]?.balancing }
    }
    let before = balancing(one)
    XCTAssertNotNil(before)
    let old = self.servers.current
    self.servers.current = XDSBootstrap.Server(uri: "t", credentials: .insecure)
    self.serve()
    self.resources.executor.sync {
      XCTAssertEqual(self.reports.opened, ["s", "t"])
      XCTAssertEqual(self.reports.cancelled, 1, "the old one")
      XCTAssertEqual(self.targets.table(of: old).reported, [])
      XCTAssertEqual(self.targets.table(of: self.servers.current).reported.map(\.cluster), ["a"])
    }
    XCTAssertEqual(balancing(one), before, "the same counts go on")
    XCTAssertEqual(balancing(two), before)
    one.watch?.cancel()
    two.watch?.cancel()
    self.resources.executor.runUntilIdle()
    XCTAssertEqual(self.resources.executor.sync { self.reports.cancelled }, 2)
  }

  func testTheSecurityOfClusters() throws {
    let channel = try self.resolve()
    self.serve()
    XCTAssertNil(self.targets.security.security(of: "a"))
    var secure = ClusterResource.endpoints("ea")
    secure.security = ClusterSecurity(roots: "roots")
    self.resources.set("a", .cluster(secure))
    XCTAssertEqual(self.targets.security.security(of: "a"), ClusterSecurity(roots: "roots"))
    // Calls of the old routes still run.
    self.resources.set("orders", .listener(.inline(.to("b"))))
    XCTAssertEqual(self.targets.security.security(of: "a"), ClusterSecurity(roots: "roots"))
    channel.watch?.cancel()
    self.resources.executor.runUntilIdle()
    XCTAssertNil(self.targets.security.security(of: "a"))
  }

  func testShutDown() throws {
    let channel = try self.resolve()
    self.serve()
    self.resources.executor.sync { self.targets.shutDown() }
    XCTAssertEqual(self.resources.watched, [])
    XCTAssertEqual(self.clusters(channel), ["a": ["10.0.0.1:1"]], "the last routes stay")
    let late = try self.resolve()
    try self.resources.executor.sync {
      XCTAssertThrowsError(try late.answers.last?.get()) { error in
        XCTAssertTrue("\(error)".contains("was shut down"), "\(error)")
      }
    }
  }
}

/// Streams of reports, by the server.
private final class LoadReportsLog: @unchecked Sendable {
  private final class Stream: LoadReportStream {
    let onCancel: () -> Void

    init(_ onCancel: @escaping () -> Void) {
      self.onCancel = onCancel
    }

    func send(
      _ request: Envoy_Service_LoadStats_V3_LoadStatsRequest,
      completion: @escaping @Sendable () -> Void
    ) {
      completion()
    }

    func requestNext() {}

    func cancel() { self.onCancel() }
  }

  var opened: [String] = []
  var cancelled = 0

  func open(
    _ server: XDSBootstrap.Server,
    _ handle: @escaping @Sendable (LoadReporter.Event) -> Void
  ) -> any LoadReportStream {
    self.opened.append(server.uri)
    return Stream { self.cancelled += 1 }
  }
}
