internal import Connect
internal import ConnectTesting
internal import XCTest

@testable internal import ConnectXDS

/// Resources that do not come, or go away (gRFC A57, A53).
final class ResourceTimerTests: XCTestCase {
  private static let missing =
    "-not_found the listener a does not exist: the control plane one has not sent it within 15.0 seconds (node ID: me)"

  func testSilence() throws {
    let fixture = DiscoveryFixture()
    let a = fixture.watch("a")
    fixture.executor.advance(by: .milliseconds(14_999))
    XCTAssertEqual(a.take(), [])
    fixture.executor.advance(by: .milliseconds(1))
    XCTAssertEqual(a.take(), [Self.missing])
    XCTAssertEqual(fixture.snapshot(), ["a doesNotExist -"])
    XCTAssertEqual(fixture.watch("a").take(), [Self.missing])
    // Once.
    fixture.executor.advance(by: .seconds(100))
    XCTAssertEqual(a.take(), [])
    // It may come later.
    try fixture.respond(["a=1"], version: "1")
    XCTAssertEqual(a.take(), ["+1"])
  }

  func testEachResourceHasItsOwnTime() throws {
    let fixture = DiscoveryFixture()
    let a = fixture.watch("a")
    fixture.executor.advance(by: .seconds(10))
    let b = fixture.watch("b")
    fixture.executor.advance(by: .seconds(5))
    XCTAssertEqual(a.take().count, 1)
    XCTAssertEqual(b.take(), [])
    try fixture.respond(["b=1"], version: "1")
    fixture.executor.advance(by: .seconds(100))
    XCTAssertEqual(b.take(), ["+1"])
  }

  func testInterestThatCameAgainHasANewTime() throws {
    let fixture = DiscoveryFixture()
    _ = fixture.watch("other")
    let first = fixture.watch("a")
    fixture.executor.advance(by: .seconds(10))
    fixture.cancel(first)
    let second = fixture.watch("a")
    fixture.executor.advance(by: .seconds(14))
    XCTAssertEqual(second.take(), [])
    fixture.executor.advance(by: .seconds(1))
    XCTAssertEqual(second.take(), [Self.missing])
    XCTAssertEqual(first.take(), [])
  }

  /// The time counts from when the request has gone out.
  func testTimeOfConnectingDoesNotCount() throws {
    let fixture = DiscoveryFixture()
    fixture.planes.connects = false
    let a = fixture.watch("a")
    fixture.executor.advance(by: .seconds(60))
    XCTAssertEqual(a.take(), [])
    let stream = try fixture.stream()
    fixture.on { stream.onEvent(.started) }
    fixture.executor.advance(by: .seconds(14))
    XCTAssertEqual(a.take(), [])
    fixture.executor.advance(by: .seconds(1))
    XCTAssertEqual(a.take(), [Self.missing])
  }

  func testARequestThatDoesNotGoOut() throws {
    let fixture = DiscoveryFixture()
    fixture.planes.takesRequests = false
    let a = fixture.watch("a")
    fixture.executor.advance(by: .seconds(60))
    XCTAssertEqual(a.take(), [])
  }

  /// Without a stream nobody can answer; the next stream begins from the start.
  func testLossSuspendsTheTime() throws {
    let fixture = DiscoveryFixture()
    _ = fixture.watch("other")
    try fixture.respond(["other=1"], version: "1")
    let a = fixture.watch("a")
    fixture.executor.advance(by: .seconds(14))
    try fixture.end()
    fixture.executor.advance(by: .seconds(2))
    XCTAssertEqual(fixture.planes.streams.count, 2)
    fixture.executor.advance(by: .seconds(12))
    XCTAssertEqual(a.take(), [])
    fixture.executor.advance(by: .seconds(3))
    XCTAssertEqual(a.take(), [Self.missing])
  }

  /// The server need not send again what the client has.
  func testKnownResourcesHaveNoTimer() throws {
    let fixture = DiscoveryFixture()
    let a = fixture.watch("a")
    try fixture.respond(["a=1"], version: "1")
    try fixture.end()
    fixture.executor.advance(by: .seconds(100))
    XCTAssertEqual(a.take(), ["+1"])
    XCTAssertEqual(fixture.planes.streams.count, 2)
  }

  // MARK: - Deletion

  func testAbsenceDeletesListenersAndClusters() throws {
    for type in ResourceType.allCases {
      let fixture = DiscoveryFixture()
      let (a, b, c) = (fixture.watch("a", type), fixture.watch("b", type), fixture.watch("c", type))
      try fixture.respond(["a=1", "b=1"], type, version: "1")
      XCTAssertEqual(a.take() + b.take(), ["+1", "+1"])
      try fixture.respond(["b=2"], type, version: "2")
      XCTAssertEqual(b.take(), ["+2"])
      let heard = a.take()
      if type.isDeletedByAbsence {
        XCTAssertEqual(
          heard,
          ["-not_found the \(type.noun) a does not exist: the control plane one has deleted it (node ID: me)"]
        )
      } else {
        XCTAssertEqual(heard, [])
      }
      // One that never came may only be late.
      XCTAssertEqual(c.take(), [])
      // Deleted once.
      try fixture.respond(["b=2"], type, version: "3")
      XCTAssertEqual(a.take(), [])
      try fixture.respond(["a=4", "b=2"], type, version: "4")
      XCTAssertEqual(a.take(), ["+4"])
    }
  }

  /// A bad version of a resource is no absence.
  func testRefusalIsNoDeletion() throws {
    let fixture = DiscoveryFixture()
    let a = fixture.watch("a")
    try fixture.respond(["a=1"], version: "1")
    try fixture.respond(["a!bad"], version: "2")
    XCTAssertEqual(a.take(), ["+1"])
  }

  /// A resource that cannot even be named may be the one that seems to be missing.
  func testWhatHasNoNameIsNoAbsence() throws {
    let fixture = DiscoveryFixture()
    let a = fixture.watch("a")
    try fixture.respond(["a=1"], version: "1")
    try fixture.respond(["!no name"], version: "2")
    XCTAssertEqual(a.take(), ["+1"])
    try fixture.respond([], version: "3")
    XCTAssertEqual(a.take().count, 1)
  }

  func testIgnoredDeletion() throws {
    let fixture = DiscoveryFixture(
      XDSBootstrap(servers: [.init(uri: "one", credentials: .insecure, ignoresResourceDeletion: true)])
    )
    let a = fixture.watch("a")
    try fixture.respond(["a=1"], version: "1")
    try fixture.respond([], version: "2")
    try fixture.respond([], version: "3")
    XCTAssertEqual(a.take(), ["+1"])
    XCTAssertEqual(fixture.watch("a").take(), ["+1"])
    try fixture.respond(["a=4"], version: "4")
    XCTAssertEqual(a.take(), ["+4"])
  }
}
