internal import Connect
internal import ConnectChannels
internal import ConnectTesting
internal import SwiftProtobuf
internal import Synchronization
internal import XCTest

@testable internal import ConnectXDS

/// What follows from one event has the same order each time, so that simulations repeat; and other bounds of a client.
final class DiscoveryOrderTests: XCTestCase {
  private static let names = ["f", "c", "a", "h", "e", "b", "g", "d"]

  private final class Log: Sendable {
    private let all = Mutex<[String]>([])

    func add(_ text: String) { self.all.withLock { $0.append(text) } }

    func take() -> [String] {
      self.all.withLock { all in
        defer { all = [] }; return all
      }
    }
  }

  private static func listener(_ authority: String) -> String {
    "xdstp://\(authority)/envoy.config.listener.v3.Listener/x"
  }

  private static func server(_ uri: String) -> XDSBootstrap.Server { .init(uri: uri, credentials: .insecure) }

  /// Watches all names of one type.
  private func watchAll(_ fixture: DiscoveryFixture, _ log: Log) -> [any ResourceWatch] {
    fixture.on {
      Self.names.map { name in
        fixture.client.watch(.listener, name) { state in
          if case .present = state { log.add("+\(name)") } else { log.add("-\(name)") }
        }
      }
    }
  }

  func testWhatIsMissing() throws {
    let fixture = DiscoveryFixture()
    let log = Log()
    let watches = self.watchAll(fixture, log)
    let missing = Self.names.sorted().map { "-\($0)" }
    try fixture.end()
    XCTAssertEqual(log.take(), missing, "unreachable")
    fixture.executor.advance(by: .seconds(2))
    fixture.executor.advance(by: .seconds(15))
    XCTAssertEqual(log.take(), missing, "not sent in time")
    try fixture.respond(Self.names.map { "\($0)=1" }, version: "1")
    XCTAssertEqual(log.take(), Self.names.map { "+\($0)" })
    try fixture.respond([], version: "2")
    XCTAssertEqual(log.take(), missing, "deleted")
    fixture.on { for watch in watches { watch.cancel() } }
  }

  func testOtherServers() throws {
    let authorities = Dictionary(
      uniqueKeysWithValues: Self.names.map { name in
        (name, XDSBootstrap.Authority(servers: [Self.server("one"), Self.server("to \(name)")]))
      }
    )
    let fixture = DiscoveryFixture(XDSBootstrap(servers: [Self.server("one")], authorities: authorities))
    for name in Self.names { _ = fixture.watch(Self.listener(name)) }
    try fixture.end()
    XCTAssertEqual(
      fixture.planes.streams.map(\.server),
      ["one"] + Self.names.sorted().map { "to \($0)" }
    )
  }

  /// Of each authority, its own servers alone are heard (gRFC A47).
  func testAServerThatSendsWhatItIsNotAskedFor() throws {
    let authority = XDSBootstrap.Authority(servers: [Self.server("two")])
    let fixture = DiscoveryFixture(XDSBootstrap(servers: [Self.server("one")], authorities: ["a": authority]))
    let (own, other) = (fixture.watch("own"), fixture.watch(Self.listener("a")))
    try fixture.respond(["own=1", "\(Self.listener("a"))=false"], version: "1")
    XCTAssertEqual(own.take(), ["+1"])
    XCTAssertEqual(other.take(), [])
    try fixture.respond(["\(Self.listener("a"))=right", "own=2"], version: "1", from: "two")
    XCTAssertEqual(own.take(), [])
    XCTAssertEqual(other.take(), ["+right"])
  }

  /// The loads of a cluster are reported to the server that it comes from.
  func testTheSameClusterOfAnotherServer() {
    for isReported in [false, true] {
      var cluster = ClusterResource(kind: .endpoints("e"), policy: .byLocality(.roundRobin))
      cluster.reportsLoads = isReported
      var cached = CachedResource()
      func accept(from server: String) -> Bool {
        cached.accept(.cluster(cluster), .init(), version: "1", time: .zero, from: Self.server(server))
      }
      XCTAssertTrue(accept(from: "one"))
      XCTAssertFalse(accept(from: "one"))
      XCTAssertEqual(accept(from: "two"), isReported)
      XCTAssertFalse(accept(from: "two"))
    }
  }

  /// What looks like one character may be megabytes. It goes back to the server, and into the errors of calls.
  func testLongProblems() throws {
    let fixture = DiscoveryFixture()
    let heard = fixture.watch("a")
    _ = try fixture.sent()
    try fixture.respond(["a!e" + String(repeating: "\u{301}", count: 100_000)], version: "1")
    let message = try XCTUnwrap(try fixture.stream().requests.last?.errorDetail.message)
    XCTAssertTrue(message.contains("a: "), "\(message.utf8.count) bytes")
    XCTAssertLessThan(message.utf8.count, 1_200)
    XCTAssertLessThan(heard.take().joined().utf8.count, 1_200)
  }

  // MARK: - An executor that is over

  private final class DeadExecutor: CallExecutor {
    private final class Timer: CallTimer {
      func cancel() {}
    }

    var now: Duration { .zero }
    var isCurrent: Bool { false }
    func execute(_ work: @escaping @Sendable () -> Void) {}
    func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> any CallTimer { Timer() }
  }

  func testASnapshotWithoutAnExecutor() async {
    let client = XDSClient(
      bootstrap: XDSBootstrap(servers: [Self.server("one")], node: .init(id: "me")),
      on: DeadExecutor()
    ) { _ in throw ConnectError(code: .internalError, message: "no transport") }
    let snapshot = await client.snapshot()
    XCTAssertEqual(snapshot.resources, [])
    XCTAssertTrue(snapshot.json.contains("me"), snapshot.json)
  }
}
