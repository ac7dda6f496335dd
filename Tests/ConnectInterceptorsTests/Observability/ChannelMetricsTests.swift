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
    let (noCluster, noZone) = (("grpc.lb.backend_service", ""), ("grpc.lb.locality", ""))
    XCTAssertEqual(try backend.expectCounter(picks, [self.server, noCluster, noZone]).totalValue, 1)
    XCTAssertEqual(try backend.expectCounter(picks, east).totalValue, 3)
    XCTAssertEqual(try backend.expectCounter(picks, west).totalValue, 2)
    XCTAssertEqual(
      try backend.expectCounter(picks, [self.server, noCluster, ("grpc.lb.locality", "west")]).totalValue,
      1
    )
    XCTAssertEqual(try backend.expectCounter("rpc.client.channel.picks.other_zone", west).totalValue, 2)
    XCTAssertEqual(backend.counters.count, 5, "picks in the own zone have not left it")
    XCTAssertEqual(try backend.expectTimer("rpc.client.channel.queue.duration", west).values.count, 2)
  }

  func testDrops() throws {
    let backend = TestMetrics()
    let metrics = ChannelMetrics(factory: backend, families: [.openTelemetry, .grpc])
    let drops: [(String, String?)] = [
      ("lottery", "blue"), ("overload", nil), ("lottery", "blue"), ("lottery", "green"),
    ]
    for (category, cluster) in drops {
      metrics.channel(to: self.origin, did: .dropped(category: category, cluster: cluster))
    }
    for (category, cluster, count) in [("lottery", "blue", 2), ("overload", "", 1), ("lottery", "green", 1)] {
      let counter = try backend.expectCounter(
        "rpc.client.channel.drops",
        [
          self.server, ("grpc.lb.backend_service", cluster), ("rpc.client.channel.drop.category", category),
        ]
      )
      XCTAssertEqual(counter.totalValue, Int64(count))
    }
  }

  /// Backends such as Prometheus take a metric's name with one set of labels only, whatever is known of a pick.
  func testLabelsAreTheSameEachTime() {
    let backend = TestMetrics()
    let metrics = ChannelMetrics(factory: backend, includesEndpoints: true)
    func pick(_ endpoint: Int, _ place: PickPlace) {
      metrics.channel(to: self.origin, did: .picked(endpoint: "\(endpoint)", waited: .zero, place: place))
    }
    for place in [PickPlace(), PickPlace(cluster: "blue"), PickPlace(zone: "west", ownZone: "east")] {
      pick(0, place)
      metrics.channel(to: self.origin, did: .dropped(category: "lottery", cluster: place.cluster))
    }
    // More than there are metrics for, at last also of clusters.
    for endpoint in 1...5_100 { pick(endpoint, PickPlace(cluster: "blue", zone: "west")) }
    for cluster in 0..<600 { pick(0, PickPlace(cluster: "cluster \(cluster)", zone: "west")) }
    for category in ["late", "later"] {
      metrics.channel(to: self.origin, did: .dropped(category: category, cluster: "last"))
    }
    let all =
      backend.counters.map { ($0.label, $0.dimensions) } + backend.timers.map { ($0.label, $0.dimensions) }
    XCTAssertTrue((11_000..<11_010).contains(all.count), "\(all.count)")
    for (label, metrics) in Dictionary(grouping: all, by: \.0) {
      XCTAssertEqual(Set(metrics.map { $0.1.map(\.0) }).count, 1, label)
    }
    let values = all.map { $0.1.map(\.1) }
    XCTAssertTrue(values.contains { $0.contains("other") && $0.contains("blue") && $0.contains("west") })
    XCTAssertTrue(values.contains { $0.filter { $0 == "other" }.count == 3 })
    for category in ["late", "later"] { XCTAssertTrue(values.contains { $0.last == category }, category) }
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
      ["server.address", "grpc.lb.backend_service", "rpc.client.channel.drop.category"]
    )
    XCTAssertEqual(
      labels["rpc.client.channel.ejections"],
      ["server.address", "network.peer.address"]
    )
    XCTAssertEqual(labels["rpc.client.channel.resolver.updates"], ["server.address"])
  }
}
