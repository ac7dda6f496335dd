import Connect
import ConnectChannels
import ConnectInterceptors
import MetricsTestKit
import XCTest

/// Where picks go, and calls that are dropped.
final class ChannelMetricsTests: XCTestCase {
  private let origin = Origin(scheme: .https, host: "service.test", port: 443)
  private let server = ("server.address", "https://service.test")

  func testPlaces() throws {
    let backend = TestMetrics()
    let metrics = ChannelMetrics(factory: backend)
    func pick(_ place: PickPlace, waited: Duration? = nil) {
      metrics.channel(to: self.origin, did: .picked(endpoint: "10.0.0.1:443", waited: waited, place: place))
    }
    pick(PickPlace())
    for _ in 0..<3 { pick(PickPlace(cluster: "blue", zone: "east", ownZone: "east")) }
    for _ in 0..<2 {
      pick(PickPlace(cluster: "blue", zone: "west", ownZone: "east"), waited: .milliseconds(5))
    }
    // Without the client's zone nobody knows whether a call has left it.
    pick(PickPlace(zone: "west"))

    let east = [self.server, ("grpc.lb.backend_service", "blue"), ("grpc.lb.locality", "east")]
    let west = [self.server, ("grpc.lb.backend_service", "blue"), ("grpc.lb.locality", "west")]
    let picks = "rpc.client.channel.picks"
    XCTAssertEqual(try backend.expectCounter(picks, [self.server]).totalValue, 1)
    XCTAssertEqual(try backend.expectCounter(picks, east).totalValue, 3)
    XCTAssertEqual(try backend.expectCounter(picks, west).totalValue, 2)
    XCTAssertEqual(
      try backend.expectCounter(picks, [self.server, ("grpc.lb.locality", "west")]).totalValue,
      1
    )
    XCTAssertEqual(try backend.expectCounter("rpc.client.channel.picks.other_zone", west).totalValue, 2)
    XCTAssertEqual(backend.counters.count, 5, "picks in the own zone have not left it")
    XCTAssertEqual(try backend.expectTimer("rpc.client.channel.queue.duration", west).values.count, 2)
  }

  func testDrops() throws {
    let backend = TestMetrics()
    let metrics = ChannelMetrics(factory: backend, families: [.openTelemetry, .grpc])
    for category in ["lottery", "overload", "lottery"] {
      metrics.channel(to: self.origin, did: .dropped(category: category))
    }
    for (category, count) in [("lottery", 2), ("overload", 1)] {
      let counter = try backend.expectCounter(
        "rpc.client.channel.drops",
        [self.server, ("rpc.client.channel.drop.category", category)]
      )
      XCTAssertEqual(counter.totalValue, Int64(count))
    }
  }

  /// What is recorded is described with all its labels.
  func testDescriptions() {
    let descriptions = ChannelMetrics.descriptions(of: .openTelemetry)
    let labels = Dictionary(uniqueKeysWithValues: descriptions.map { ($0.name, $0.labels) })
    let place = ["server.address", "network.peer.address", "grpc.lb.backend_service", "grpc.lb.locality"]
    for name in ["picks", "picks.other_zone", "queue.duration"] {
      XCTAssertEqual(labels["rpc.client.channel.\(name)"], place, name)
    }
    XCTAssertEqual(
      labels["rpc.client.channel.drops"],
      ["server.address", "rpc.client.channel.drop.category"]
    )
    XCTAssertEqual(
      labels["rpc.client.channel.ejections"],
      ["server.address", "network.peer.address"]
    )
    XCTAssertEqual(labels["rpc.client.channel.resolver.updates"], ["server.address"])
  }
}
