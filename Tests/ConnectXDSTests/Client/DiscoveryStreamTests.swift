internal import Connect
internal import ConnectTesting
internal import SwiftProtobuf
internal import XCTest

@testable internal import ConnectXDS

/// The protocol on one stream.
final class DiscoveryStreamTests: XCTestCase {
  func testFirstRequestAndAcknowledgements() throws {
    let fixture = DiscoveryFixture()
    let a = fixture.watch("a")
    XCTAssertEqual(try fixture.sent(), ["Listener a node=me"])

    try fixture.respond(["a=1"], version: "1", nonce: "x")
    XCTAssertEqual(a.take(), ["+1"])
    XCTAssertEqual(try fixture.sent(), ["Listener a v1 nx"])
    // Unchanged: nothing new for the watch.
    try fixture.respond(["a=1"], version: "2", nonce: "y")
    XCTAssertEqual(a.take(), [])
    XCTAssertEqual(try fixture.sent(), ["Listener a v2 ny"])
  }

  func testNodeInTheFirstRequestOnly() throws {
    let fixture = DiscoveryFixture(
      XDSBootstrap(
        servers: [DiscoveryFixture.server],
        node: .init(id: "i", cluster: "c", locality: XDSLocality(zone: "z"), metadata: #"{"k":[1]}"#)
      )
    )
    _ = fixture.watch("a")
    _ = fixture.watch("b", .cluster)
    let requests = try fixture.stream().requests
    XCTAssertEqual(requests.map(\.hasNode), [true, false])
    let node = requests[0].node
    XCTAssertEqual(node.cluster, "c")
    XCTAssertEqual(node.locality.zone, "z")
    XCTAssertEqual(node.metadata.fields["k"]?.listValue.values.first?.numberValue, 1)
    XCTAssertEqual(node.userAgentName, "connect-swift-linux")
    XCTAssertFalse(node.userAgentVersion.isEmpty)
    XCTAssertTrue(node.clientFeatures.contains("xds.config.resource-in-sotw"))
  }

  func testRefusalKeepsTheLastGoodVersion() throws {
    let fixture = DiscoveryFixture()
    let a = fixture.watch("a")
    try fixture.respond(["a=1"], version: "1")
    _ = try fixture.sent()
    XCTAssertEqual(a.take(), ["+1"])

    try fixture.respond(["a!no routes", "!no name"], version: "2")
    XCTAssertEqual(a.take(), [])
    XCTAssertEqual(
      try fixture.sent(),
      [
        "Listener a v1 n2 3:xDS response validation errors: [resource index 0: a: no routes; resource index 1: no name]"
      ]
    )
    XCTAssertEqual(fixture.snapshot(), ["a refused 1"])
    // The next request says it no more.
    _ = fixture.watch("b")
    XCTAssertEqual(try fixture.sent(), ["Listener a,b v1 n2"])
    try fixture.respond(["a=3", "b=3"], version: "3")
    XCTAssertEqual(a.take(), ["+3"])
    XCTAssertEqual(fixture.snapshot(), ["a acknowledged 3", "b acknowledged 3"])
  }

  /// What is good in a response is used, and its version counts.
  func testPartOfAResponseIsRefused() throws {
    let fixture = DiscoveryFixture()
    let (a, b) = (fixture.watch("a"), fixture.watch("b"))
    _ = try fixture.sent()
    try fixture.respond(["a!bad", "b=1"], version: "1")
    XCTAssertEqual(b.take(), ["+1"])
    XCTAssertEqual(a.take(), ["-invalid_argument the listener a cannot be used: bad (node ID: me)"])
    XCTAssertEqual(
      try fixture.sent(),
      ["Listener a,b v1 n1 3:xDS response validation errors: [resource index 0: a: bad]"]
    )
  }

  func testRefusalWithoutAGoodVersion() throws {
    let fixture = DiscoveryFixture()
    let first = fixture.watch("a")
    _ = try fixture.sent()
    try fixture.respond(["a!bad"], version: "1")
    XCTAssertEqual(first.take().count, 1)
    XCTAssertEqual(
      try fixture.sent(),
      ["Listener a n1 3:xDS response validation errors: [resource index 0: a: bad]"]
    )
    // Others hear at once what is known.
    XCTAssertEqual(
      fixture.watch("a").take(),
      ["-invalid_argument the listener a cannot be used: bad (node ID: me)"]
    )
    // The server has sent something, so it is not missing.
    fixture.executor.advance(by: .seconds(100))
    XCTAssertEqual(first.take(), [])
  }

  func testContradictions() throws {
    let fixture = DiscoveryFixture()
    let a = fixture.watch("a")
    _ = try fixture.sent()
    try fixture.respond(["a=1", "a=2"], version: "1")
    XCTAssertEqual(a.take(), ["+1"])
    XCTAssertEqual(
      try fixture.sent(),
      [
        "Listener a v1 n1 3:xDS response validation errors: "
          + "[resource index 1: a: the response has a resource of this name before]"
      ]
    )
    try fixture.respond(["xdstp:x=1", "a=1"], version: "2")
    XCTAssertEqual(
      try fixture.sent(),
      [
        "Listener a v2 n2 3:xDS response validation errors: [resource index 0: xdstp:x: "
          + "the name cannot be used: it has no authority; write xdstp://AUTHORITY/envoy.config.listener.v3.Listener/NAME]"
      ]
    )
  }

  /// A message about a flood of bad resources is bounded.
  func testFloodOfBadResources() throws {
    let fixture = DiscoveryFixture()
    _ = fixture.watch("a")
    _ = try fixture.sent()
    try fixture.respond((0..<1000).map { "n\($0)!bad" }, version: "1")
    let sent = try fixture.sent().joined()
    XCTAssertTrue(sent.hasSuffix("; and 900 more]"), String(sent.suffix(100)))
    XCTAssertLessThan(sent.utf8.count, 10_000)
  }

  /// They are neither acknowledged nor refused: either would ask for all resources of the type.
  func testTypesThatWereNotAskedFor() throws {
    let fixture = DiscoveryFixture()
    let a = fixture.watch("a")
    _ = try fixture.sent()
    try fixture.respond(["x=1"], .cluster, version: "1")
    try fixture.respond(["x=1"], version: "1", url: "type.googleapis.com/some.Other")
    try fixture.respond(["x=1"], version: "1", url: "")
    XCTAssertEqual(try fixture.sent(), [])
    XCTAssertEqual(a.take(), [])
    try fixture.respond(["a=1"], version: "2")
    XCTAssertEqual(a.take(), ["+1"])
  }

  func testResourcesThatNobodyWatchesAreNotKept() throws {
    let fixture = DiscoveryFixture()
    _ = fixture.watch("a")
    _ = try fixture.sent()
    try fixture.respond(["a=1", "b=1"], version: "1")
    XCTAssertEqual(try fixture.sent(), ["Listener a v1 n1"])
    XCTAssertEqual(fixture.snapshot(), ["a acknowledged 1"])
    XCTAssertEqual(fixture.watch("b").take(), [])
  }

  // MARK: - Order of requests

  func testOneRequestAtATime() throws {
    let fixture = DiscoveryFixture()
    fixture.planes.takesRequests = false
    _ = fixture.watch("a")
    for index in 0..<50 { _ = fixture.watch("c\(index)", .cluster) }
    _ = fixture.watch("b")
    XCTAssertEqual(try fixture.sent(), ["Listener a node=me"])
    let stream = try fixture.stream()
    fixture.on { stream.takeRequest() }
    let clusters = (0..<50).map { "c\($0)" }.sorted().joined(separator: ",")
    XCTAssertEqual(try fixture.sent(), ["Cluster \(clusters)"])
    fixture.on { stream.takeRequest() }
    XCTAssertEqual(try fixture.sent(), ["Listener a,b"])
    fixture.on { stream.takeRequest() }
    XCTAssertEqual(try fixture.sent(), [])
  }

  /// A watch that takes the place of another one costs one request.
  func testChangesWithinOnePieceOfWork() throws {
    let fixture = DiscoveryFixture()
    let old = fixture.watch("a")
    _ = try fixture.sent()
    fixture.executor.sync {
      fixture.cancelNow(old)
      for name in ["b", "c"] { _ = fixture.client.watch(.listener, name) { _ in } }
    }
    fixture.executor.runUntilIdle()
    XCTAssertEqual(try fixture.sent(), ["Listener b,c"])
    XCTAssertEqual(fixture.planes.streams.count, 1)
  }

  func testUnsubscribing() throws {
    let fixture = DiscoveryFixture()
    let (a, b) = (fixture.watch("a"), fixture.watch("b"))
    let c = fixture.watch("c", .cluster)
    try fixture.respond(["a=1", "b=1"], version: "1")
    _ = try fixture.sent()
    fixture.cancel(a)
    XCTAssertEqual(try fixture.sent(), ["Listener b v1 n1"])
    fixture.cancel(b)
    XCTAssertEqual(try fixture.sent(), ["Listener  v1 n1"])
    // The nonce still counts when there is interest again; what was known is gone.
    let again = fixture.watch("a")
    XCTAssertEqual(try fixture.sent(), ["Listener a v1 n1"])
    XCTAssertEqual(again.take(), [])

    XCTAssertFalse(try fixture.stream().isCancelled)
    fixture.cancel(again)
    fixture.cancel(c)
    XCTAssertTrue(try fixture.stream().isCancelled)
    XCTAssertEqual(fixture.snapshot(), [])
    XCTAssertEqual(fixture.executor.scheduled, [])
    // A new stream begins without versions.
    _ = fixture.watch("a")
    XCTAssertEqual(fixture.planes.streams.count, 2)
    XCTAssertTrue(try fixture.sent().last == "Listener a node=me")
  }

  /// The next response comes after watchers have used the last one.
  func testDemand() throws {
    let fixture = DiscoveryFixture()
    _ = fixture.watch("a")
    let stream = try fixture.stream()
    XCTAssertEqual(stream.demand, 1)
    try fixture.respond(["a=1"], version: "1")
    XCTAssertEqual(stream.demand, 1)
    try fixture.respond(["a=1"], version: "1", url: "type.googleapis.com/some.Other")
    XCTAssertEqual(stream.demand, 1)
  }

  func testWatchesMayWatchAndCancelFromWithin() throws {
    let fixture = DiscoveryFixture()
    let inner = Heard()
    let client = fixture.client
    let watch = fixture.on {
      fixture.client.watch(.listener, "a") { _ in
        client.watch(.cluster, "b") { inner.hear($0) }.cancel()
        _ = client.watch(.cluster, "c") { inner.hear($0) }
      }
    }
    _ = try fixture.sent()
    try fixture.respond(["a=1"], version: "1")
    XCTAssertEqual(try fixture.sent(), ["Listener a v1 n1", "Cluster c"])
    try fixture.respond(["b=1", "c=1"], .cluster, version: "1")
    XCTAssertEqual(inner.take(), ["+1"])
    fixture.on { watch.cancel() }
    XCTAssertEqual(try fixture.sent().last, "Listener  v1 n1")
  }
}
