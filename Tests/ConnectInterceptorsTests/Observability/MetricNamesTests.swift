import Connect
import ConnectChannels
import ConnectInterceptors
import ConnectTesting
import MetricsTestKit
import XCTest

/// The names, units and labels of metrics, against the published lists.
final class MetricNamesTests: XCTestCase {
  /// Name, instrument, unit, labels: as the specifications have them, without labels that these call optional or experimental.
  private typealias Row = (name: String, kind: String, unit: String, labels: [String])

  /// <https://grpc.io/docs/guides/opentelemetry-metrics/>, gRFC A66 and A96.
  private static let grpcCalls: [Row] = [
    ("grpc.client.attempt.started", "counter", "{attempt}", ["grpc.method", "grpc.target"]),
    ("grpc.client.attempt.duration", "histogram", "s", ["grpc.method", "grpc.target", "grpc.status"]),
    (
      "grpc.client.attempt.sent_total_compressed_message_size", "histogram", "By",
      ["grpc.method", "grpc.target", "grpc.status"]
    ),
    (
      "grpc.client.attempt.rcvd_total_compressed_message_size", "histogram", "By",
      ["grpc.method", "grpc.target", "grpc.status"]
    ),
    ("grpc.client.call.duration", "histogram", "s", ["grpc.method", "grpc.target", "grpc.status"]),
    ("grpc.client.call.retries", "histogram", "{retry}", ["grpc.method", "grpc.target"]),
    (
      "grpc.client.call.transparent_retries", "histogram", "{transparent_retry}",
      ["grpc.method", "grpc.target"]
    ),
    ("grpc.client.call.hedges", "histogram", "{hedge}", ["grpc.method", "grpc.target"]),
    ("grpc.client.call.retry_delay", "histogram", "s", ["grpc.method", "grpc.target"]),
  ]

  /// gRFC A94, and A78 for the older names.
  private static let grpcConnections: [Row] = [
    ("grpc.subchannel.disconnections", "counter", "{disconnection}", ["grpc.target"]),
    ("grpc.subchannel.connection_attempts_succeeded", "counter", "{attempt}", ["grpc.target"]),
    ("grpc.subchannel.connection_attempts_failed", "counter", "{attempt}", ["grpc.target"]),
    ("grpc.subchannel.open_connections", "upDownCounter", "{connection}", ["grpc.target"]),
    ("grpc.lb.pick_first.disconnections", "counter", "{disconnection}", ["grpc.target"]),
    ("grpc.lb.pick_first.connection_attempts_succeeded", "counter", "{attempt}", ["grpc.target"]),
    ("grpc.lb.pick_first.connection_attempts_failed", "counter", "{attempt}", ["grpc.target"]),
  ]

  /// <https://github.com/open-telemetry/semantic-conventions/blob/v1.40.0/docs/rpc/rpc-metrics.md>
  private static let openTelemetry: [Row] = [
    (
      "rpc.client.call.duration", "histogram", "s",
      [
        "rpc.system.name", "rpc.method", "rpc.response.status_code", "error.type", "server.address",
        "server.port",
      ]
    )
  ]

  private func check(_ descriptions: [MetricDescription], _ rows: [Row], line: UInt = #line) {
    XCTAssertEqual(descriptions.map(\.name), rows.map(\.name), line: line)
    for (description, row) in zip(descriptions, rows) {
      XCTAssertEqual(description.kind.rawValue, row.kind, row.name, line: line)
      XCTAssertEqual(description.unit, row.unit, row.name, line: line)
      XCTAssertEqual(description.labels, row.labels, row.name, line: line)
      XCTAssertFalse(description.summary.isEmpty, row.name, line: line)
    }
  }

  func testDescriptions() {
    self.check(CallMetrics.descriptions(of: .openTelemetry), Self.openTelemetry)
    self.check(CallMetrics.descriptions(of: .grpc), Self.grpcCalls)
    self.check(CallMetrics.descriptions(of: [.grpc, .openTelemetry]), Self.openTelemetry + Self.grpcCalls)
    self.check(ChannelMetrics.descriptions(of: .grpc), Self.grpcConnections)
    XCTAssertEqual(CallMetrics.descriptions(of: []), [])
    for description in ChannelMetrics.descriptions(of: .openTelemetry) {
      XCTAssertTrue(description.name.hasPrefix("rpc.client.channel."), description.name)
    }
  }

  /// All that is recorded is described, with these labels, and the other way around.
  func testWhatIsRecordedIsWhatIsDescribed() async throws {
    let backend = TestMetrics()
    let service = ObservedService(.grpc)
    let metrics = CallMetrics(
      factory: backend,
      options: CallMetrics.Options(families: .grpc),
      clock: service.executor.clock
    )
    let client = service.client(
      { MetricsInterceptor(metrics, config: $0) },
      { _ in RetryWhenUnavailable() }
    )
    try await service.echo("flaky", by: client)
    service.transport.inject(.refuseStream, calls: 1)
    try await service.echo("hello", by: client)
    var options = CallOptions()
    options.hedging = HedgingPolicy(delay: .milliseconds(500), allowsSideEffects: true)
    try await service.echo("hello", by: client, options: options)
    service.executor.runUntilIdle()

    var recorded: [String: Set<[String]>] = [:]
    for counter in backend.counters {
      recorded[counter.label, default: []].insert(counter.dimensions.map(\.0))
    }
    for recorder in backend.recorders {
      recorded[recorder.label, default: []].insert(recorder.dimensions.map(\.0))
    }
    for timer in backend.timers { recorded[timer.label, default: []].insert(timer.dimensions.map(\.0)) }
    let described = CallMetrics.descriptions(of: .grpc).map { ($0.name, Set([$0.labels])) }
    XCTAssertEqual(recorded, Dictionary(uniqueKeysWithValues: described))
  }

  func testConnections() throws {
    let backend = TestMetrics()
    let metrics = ChannelMetrics(factory: backend, families: .grpc)
    let origin = Origin(scheme: .https, host: "service.test", port: 443)
    metrics.channel(to: origin, did: .resolved(endpoints: 2))
    for _ in 0..<3 { metrics.channel(to: origin, did: .connectionOpened(endpoint: "10.0.0.1:443")) }
    metrics.channel(
      to: origin,
      did: .connectionFailed(endpoint: "10.0.0.2:443", ConnectError(code: .unavailable))
    )
    metrics.channel(to: origin, did: .connectionClosed(endpoint: "10.0.0.1:443"))
    let sockets = [
      "unix:/run/service.sock": Origin(scheme: .unix, host: "/run/service.sock", port: 0),
      "unix-abstract:api": Origin(scheme: .unixAbstract, host: "api", port: 0),
      "vsock:3:50051": Origin(scheme: .vsock, host: "3", port: 50051),
    ]
    for (name, socket) in sockets { metrics.channel(to: socket, did: .connectionOpened(endpoint: name)) }

    let target = [("grpc.target", "dns:///service.test:443")]
    let counts = [
      "disconnections": 1, "connection_attempts_succeeded": 3, "connection_attempts_failed": 1,
    ]
    for family in ["grpc.subchannel.", "grpc.lb.pick_first."] {
      for (name, count) in counts {
        XCTAssertEqual(try backend.expectCounter(family + name, target).totalValue, Int64(count), name)
      }
    }
    XCTAssertEqual(try backend.expectMeter("grpc.subchannel.open_connections", target).lastValue, 2)
    for name in sockets.keys {
      let other = [("grpc.target", name)]
      let counter = try backend.expectCounter("grpc.subchannel.connection_attempts_succeeded", other)
      XCTAssertEqual(counter.totalValue, 1, name)
    }
    let names = Set(backend.counters.map(\.label) + backend.meters.map(\.label))
    XCTAssertEqual(names, Set(ChannelMetrics.descriptions(of: .grpc).map(\.name)))
    XCTAssertTrue(backend.timers.isEmpty)
  }

  func testChannelsWithoutTheServer() throws {
    let backend = TestMetrics()
    let metrics = ChannelMetrics(
      factory: backend,
      includesServer: false,
      includesEndpoints: true,
      families: [.openTelemetry, .grpc]
    )
    for number in 0..<10 {
      let origin = Origin(scheme: .https, host: "host\(number).test", port: 443)
      metrics.channel(to: origin, did: .connectionOpened(endpoint: "10.0.0.1:443"))
      metrics.channel(to: origin, did: .resolved(endpoints: 1))
    }
    let other = [("grpc.target", "other")]
    for family in ["grpc.subchannel.", "grpc.lb.pick_first."] {
      let counter = try backend.expectCounter(family + "connection_attempts_succeeded", other)
      XCTAssertEqual(counter.totalValue, 10)
    }
    let opened = try backend.expectCounter(
      "rpc.client.channel.connections.opened",
      [("network.peer.address", "10.0.0.1:443")]
    )
    XCTAssertEqual(opened.totalValue, 10)
    XCTAssertEqual(try backend.expectCounter("rpc.client.channel.resolver.updates", []).totalValue, 10)
    XCTAssertEqual(backend.counters.count, 8)
  }

  func testBothFamiliesOfChannels() {
    let backend = TestMetrics()
    let metrics = ChannelMetrics(factory: backend, families: [.openTelemetry, .grpc])
    metrics.channel(
      to: Origin(scheme: .http, host: "::1", port: 80),
      did: .connectionOpened(endpoint: "[::1]:80")
    )
    // Those that have counted nothing yet are made with the others.
    let grpc = ["grpc.subchannel", "grpc.lb.pick_first"].flatMap { family in
      ["disconnections", "connection_attempts_succeeded", "connection_attempts_failed"].map {
        "\(family).\($0) dns:///[::1]:80"
      }
    }
    XCTAssertEqual(
      Set(backend.counters.map { "\($0.label) \($0.dimensions[0].1)" }),
      Set(grpc + ["rpc.client.channel.connections.opened http://[::1]"])
    )
  }
}
