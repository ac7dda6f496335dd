internal import Connect
internal import ConnectTesting
internal import Foundation
internal import XCTest

@testable internal import ConnectXDS

/// Streams that end, servers that cannot be reached, and those that take their place.
final class ControlPlaneTests: XCTestCase {
  private static func unreachable(_ server: String, _ why: String = "connection refused") -> String {
    "-unavailable the control plane \(server) cannot be used: its stream ended before any response: "
      + "unavailable: \(why)"
  }

  private let two = XDSBootstrap(
    servers: [.init(uri: "one", credentials: .insecure), .init(uri: "two", credentials: .insecure)]
  )

  // MARK: - One server

  func testANewStreamAsksForEverythingAgain() throws {
    let fixture = DiscoveryFixture()
    let a = fixture.watch("a")
    _ = fixture.watch("b", .cluster)
    try fixture.respond(["a=1"], version: "7", nonce: "x")
    try fixture.end()
    XCTAssertEqual(a.take(), ["+1"])
    XCTAssertEqual(fixture.planes.streams.count, 1)
    // Interest that changes meanwhile.
    _ = fixture.watch("c")
    XCTAssertEqual(fixture.planes.streams.count, 1)
    fixture.executor.advance(by: .seconds(2))
    XCTAssertEqual(fixture.planes.streams.count, 2)
    XCTAssertEqual(try fixture.sent(), ["Listener a,c v7 node=me", "Cluster b"])
    // A late word of the old stream changes nothing.
    let old = fixture.planes.streams[0]
    fixture.on { old.onEvent(.ended(.init(code: .unavailable, message: "late"))) }
    XCTAssertEqual(fixture.executor.scheduled.count, 2, "only the timers of b and c")
    try fixture.respond(["a=2"], version: "8")
    XCTAssertEqual(a.take(), ["+2"])
  }

  func testBackoff() throws {
    let fixture = DiscoveryFixture()
    fixture.planes.unreachable = ["one"]
    _ = fixture.watch("a")
    var expected = 1.0
    for count in 1...14 {
      XCTAssertEqual(fixture.planes.streams.count, count)
      let now = fixture.executor.now
      let next = try XCTUnwrap(fixture.executor.scheduled.first)
      let delay = Double((next - now) / .milliseconds(1)) / 1000
      XCTAssertGreaterThanOrEqual(delay, expected * 0.8 - 0.01)
      XCTAssertLessThanOrEqual(delay, expected * 1.2 + 0.01)
      expected = min(expected * 1.6, 120)
      fixture.executor.advance(to: next)
    }
    // A response makes the next failure the first one.
    fixture.planes.unreachable = []
    fixture.executor.advance(by: .seconds(150))
    try fixture.respond(["a=1"], version: "1")
    let count = fixture.planes.streams.count
    try fixture.end()
    fixture.executor.advance(by: .milliseconds(1201))
    XCTAssertEqual(fixture.planes.streams.count, count + 1)
  }

  func testUnreachableBeforeAnythingIsKnown() throws {
    let fixture = DiscoveryFixture()
    fixture.planes.unreachable = ["one"]
    let a = fixture.watch("a")
    XCTAssertEqual(a.take(), [Self.unreachable("one") + " (node ID: me)"])
    // Later watches hear it, too.
    XCTAssertEqual(fixture.watch("a").take(), [Self.unreachable("one") + " (node ID: me)"])
    let b = fixture.watch("b")
    XCTAssertEqual(b.take(), [Self.unreachable("one") + " (node ID: me)"])
    // The same again is no news.
    fixture.executor.advance(by: .seconds(10))
    XCTAssertGreaterThan(fixture.planes.streams.count, 2)
    XCTAssertEqual(a.take(), [])
    XCTAssertEqual(fixture.snapshot(), ["a requested -", "b requested -"])

    fixture.planes.unreachable = []
    fixture.executor.advance(by: .seconds(20))
    try fixture.respond(["a=1"], version: "1")
    XCTAssertEqual(a.take(), ["+1"])
    // The server is healthy: new watches wait.
    XCTAssertEqual(fixture.watch("c").take(), [])
  }

  func testLossBeforeAndAfterAResponse() throws {
    let fixture = DiscoveryFixture()
    let a = fixture.watch("a")
    try fixture.end("one", "reset")
    XCTAssertEqual(a.take(), [Self.unreachable("one", "reset") + " (node ID: me)"])
    fixture.executor.advance(by: .seconds(2))
    _ = fixture.watch("b")
    try fixture.respond(["b=1"], version: "1")
    // After a response, the loss says nothing against the server.
    try fixture.end()
    XCTAssertEqual(a.take(), [])
    // The next stream fails: the one that is known stays, the other one hears why.
    fixture.planes.unreachable = ["one"]
    fixture.executor.advance(by: .seconds(2))
    XCTAssertEqual(a.take(), [Self.unreachable("one") + " (node ID: me)"])
    XCTAssertEqual(fixture.snapshot(), ["a requested -", "b acknowledged 1"])
    XCTAssertEqual(fixture.watch("b").take(), ["+1"])
  }

  // MARK: - Several servers (gRFC A71)

  func testFallbackAndBack() throws {
    let fixture = DiscoveryFixture(self.two)
    fixture.planes.unreachable = ["one"]
    let a = fixture.watch("a")
    XCTAssertEqual(a.take(), [])
    XCTAssertEqual(try fixture.sent("two"), ["Listener a node="])
    try fixture.respond(["a=two"], version: "1", from: "two")
    XCTAssertEqual(a.take(), ["+two"])
    XCTAssertEqual(fixture.on { fixture.client.server(of: .listener, "a")?.uri }, "two")
    // New interest is for both.
    let b = fixture.watch("b")
    XCTAssertEqual(try fixture.sent("two").last, "Listener a,b v1 n1")

    // The first server takes the stream, but does not answer: the second one stays in use.
    fixture.planes.unreachable = []
    fixture.executor.advance(by: .seconds(5))
    XCTAssertEqual(try fixture.sent("one"), ["Listener a,b node="])
    XCTAssertFalse(try fixture.stream("two").isCancelled)
    try fixture.respond(["a=one"], version: "9", from: "one")
    XCTAssertEqual(a.take(), ["+one"])
    XCTAssertTrue(try fixture.stream("two").isCancelled)
    XCTAssertEqual(try fixture.sent("one"), ["Listener a,b v9 n9"])
    XCTAssertEqual(b.take(), [])
    XCTAssertEqual(fixture.on { fixture.client.server(of: .listener, "a")?.uri }, "one")
  }

  func testNoFallbackWhileEverythingIsKnown() throws {
    let fixture = DiscoveryFixture(self.two)
    let a = fixture.watch("a")
    try fixture.respond(["a=1"], version: "1")
    fixture.planes.unreachable = ["one"]
    try fixture.end()
    fixture.executor.advance(by: .seconds(10))
    XCTAssertEqual(fixture.planes.streams.filter { $0.server == "two" }.count, 0)
    XCTAssertEqual(a.take(), ["+1"])
    // A resource that is not known needs the other server, which is asked for all.
    let b = fixture.watch("b")
    XCTAssertEqual(try fixture.sent("two"), ["Listener a,b node="])
    try fixture.respond(["a=2", "b=2"], version: "1", from: "two")
    XCTAssertEqual(a.take() + b.take(), ["+2", "+2"])
  }

  func testNoServerCanBeReached() throws {
    let fixture = DiscoveryFixture(self.two)
    fixture.planes.unreachable = ["one", "two"]
    let a = fixture.watch("a")
    XCTAssertEqual(a.take(), [Self.unreachable("two")])
    XCTAssertEqual(fixture.watch("a").take(), [Self.unreachable("two")])
    // Any of them may be back.
    fixture.planes.unreachable = ["two"]
    fixture.executor.advance(by: .seconds(10))
    try fixture.respond(["a=1"], version: "1", from: "one")
    XCTAssertEqual(a.take(), ["+1"])
    let count = fixture.planes.streams.count
    fixture.executor.advance(by: .seconds(300))
    XCTAssertEqual(fixture.planes.streams.count, count, "the second server is not asked any more")
  }

  /// What the server that is back does not have any more is deleted.
  func testBackOnAServerThatLacksAResource() throws {
    let fixture = DiscoveryFixture(self.two)
    fixture.planes.unreachable = ["one"]
    let a = fixture.watch("a")
    let b = fixture.watch("b")
    try fixture.respond(["a=two", "b=two"], version: "1", from: "two")
    fixture.planes.unreachable = []
    fixture.executor.advance(by: .seconds(5))
    try fixture.respond(["a=one"], version: "1", from: "one")
    XCTAssertEqual(a.take(), ["+two", "+one"])
    XCTAssertEqual(
      b.take(),
      ["+two", "-not_found the listener b does not exist: the control plane one has deleted it"]
    )
  }

  // MARK: - Authorities (gRFC A47)

  func testAuthorities() throws {
    let bootstrap = XDSBootstrap(
      servers: [.init(uri: "one", credentials: .insecure)],
      authorities: ["x": .init(servers: [.init(uri: "two", credentials: .insecure)]), "y": .init()]
    )
    let fixture = DiscoveryFixture(bootstrap)
    let type = ResourceType.listener.messageName
    let old = fixture.watch("a")
    let x = fixture.watch("xdstp://x/\(type)/a?b=1&a=2")
    let y = fixture.watch("xdstp://y/\(type)/a")
    XCTAssertEqual(try fixture.sent("two"), ["Listener xdstp://x/\(type)/a?a=2&b=1 node="])
    XCTAssertEqual(try fixture.sent("one").last, "Listener a,xdstp://y/\(type)/a")
    // The same resource in another spelling is not asked for again.
    let same = fixture.watch("xdstp://x/\(type)/a?a=2&b=1#x")
    XCTAssertEqual(try fixture.sent("two"), [])
    // `=` ends the name in this fixture.
    try fixture.respond(["xdstp://x/\(type)/%61?b=1&a=2=X"], version: "1", from: "two")
    XCTAssertEqual(x.take() + same.take(), ["+X", "+X"])
    try fixture.respond(["a=A", "xdstp://y/\(type)/a=Y"], version: "1", from: "one")
    XCTAssertEqual(old.take() + y.take(), ["+A", "+Y"])
    // Absence counts for the authorities of the server only.
    try fixture.respond([], version: "2", from: "one")
    XCTAssertEqual(x.take(), [])
    XCTAssertEqual(y.take().count, 1)
  }

  func testNamesThatCannotBeUsed() throws {
    let fixture = DiscoveryFixture()
    let type = ResourceType.listener.messageName
    XCTAssertEqual(
      fixture.watch("xdstp://z/\(type)/a").take(),
      [
        "-failed_precondition the listener xdstp://z/\(type)/a has the authority \"z\", "
          + "which is not in the bootstrap's \"authorities\""
      ]
    )
    XCTAssertEqual(
      fixture.watch("xdstp:a").take().first?.hasPrefix("-invalid_argument the name of the listener"),
      true
    )
    XCTAssertEqual(fixture.planes.streams.count, 0)
  }

  /// A server that two authorities share is left only when neither needs it.
  func testSharedFallbackServer() throws {
    let shared = XDSBootstrap.Server(uri: "two", credentials: .insecure)
    let fixture = DiscoveryFixture(
      XDSBootstrap(
        servers: [.init(uri: "one", credentials: .insecure), shared],
        authorities: ["x": .init(servers: [shared])]
      )
    )
    fixture.planes.unreachable = ["one"]
    let type = ResourceType.listener.messageName
    _ = fixture.watch("xdstp://x/\(type)/b")
    let a = fixture.watch("a")
    try fixture.respond(["a=two"], version: "1", from: "two")
    XCTAssertEqual(a.take(), ["+two"])
    fixture.planes.unreachable = []
    fixture.executor.advance(by: .seconds(5))
    try fixture.respond(["a=one"], version: "1", from: "one")
    XCTAssertFalse(try fixture.stream("two").isCancelled)
    XCTAssertEqual(try fixture.sent("two").last, "Listener xdstp://x/\(type)/b v1 n1")
  }

  // MARK: - End

  func testShutDown() throws {
    let fixture = DiscoveryFixture()
    let a = fixture.watch("a")
    fixture.client.shutDown()
    fixture.executor.runUntilIdle()
    XCTAssertTrue(try fixture.stream().isCancelled)
    XCTAssertEqual(fixture.executor.scheduled, [])
    XCTAssertEqual(a.take(), [])
    XCTAssertEqual(fixture.watch("a").take(), ["-unavailable the xDS client was shut down"])
    fixture.cancel(a)
    XCTAssertEqual(fixture.planes.streams.count, 1)
  }

  func testAClientThatIsDroppedEndsItsStreams() throws {
    let planes: ScriptedPlanes
    do {
      let fixture = DiscoveryFixture()
      _ = fixture.watch("a")
      planes = fixture.planes
      XCTAssertFalse(planes.streams[0].isCancelled)
      let executor = fixture.executor
      addTeardownBlock { _ = executor }
    }
    for _ in 0..<1000 where !planes.streams[0].isCancelled { usleep(1000) }
    XCTAssertTrue(planes.streams[0].isCancelled)
  }
}
