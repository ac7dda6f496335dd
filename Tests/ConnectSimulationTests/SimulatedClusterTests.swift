import Connect
import ConnectChannels
import ConnectInterceptors
import ConnectSimulation
import ConnectTesting
import XCTest

/// Clusters in which things go wrong.
final class SimulatedClusterTests: XCTestCase {
  func testAQuietMinute() async {
    let greeters = Greeters()
    let report = await greeters.run()
    XCTAssertEqual(report.violations, [])
    XCTAssertEqual(report.succeeded, report.calls)
    XCTAssertEqual(Double(report.calls), 6_000, accuracy: 400)
    XCTAssertEqual(report.requests, report.calls)
    XCTAssertEqual(report.latencies.p50 ?? 0, 10, accuracy: 0.2)
    XCTAssertEqual(report.latencies.p99 ?? 0, 10, accuracy: 0.2)
    XCTAssertEqual(report.servers.map(\.requests).reduce(0, +), report.calls)
    for server in report.servers {
      XCTAssertEqual(Double(server.requests), Double(report.calls) / 3, accuracy: Double(report.calls) * 0.01)
    }
    XCTAssertTrue(
      report.description.contains("100 %") || report.description.contains("100.00 %"),
      report.description
    )
  }

  func testExtremes() async {
    for time in [Duration.seconds(Int64.min), .seconds(Int64.max), Duration(attoseconds: .min)] {
      for rate in [Double.leastNonzeroMagnitude, .nan, -.infinity, 0] {
        let greeters = Greeters()
        let service = greeters.service
        service[0].restart(drain: time, downtime: time)
        greeters.cluster.at(time) { service[1].crash() }
        let report = await greeters.run(for: .seconds(1), load: .open(perSecond: rate))
        XCTAssertEqual(report.calls, 0, "\(time), \(rate)")
      }
    }
  }

  /// The same seed gives the same, another one does not.
  func testOneSeedOneTrace() async throws {
    var reports: [SimulationReport] = []
    for seed in [7, 7, 8] as [UInt64] {
      let greeters = Greeters(seed: seed, servers: 5, balancing: .leastRequest()) { server in
        server.latency = .logNormal(median: .milliseconds(3), p99: .milliseconds(40))
        server.concurrency = 4
      }
      greeters.cluster.network.roundTrip = .uniform(.microseconds(100) ... .microseconds(900))
      greeters.cluster.network.loss = 0.01
      let service = greeters.service
      greeters.cluster.at(.seconds(10)) { service[1].crash() }
      greeters.cluster.at(.seconds(20)) { service[1].start() }
      greeters.cluster.at(.seconds(30)) { service.rollingRestart(every: .seconds(2)) }
      reports.append(await greeters.run(for: .seconds(45), load: .open(perSecond: 100)))
    }
    XCTAssertEqual(reports[0], reports[1])
    XCTAssertEqual(try reports[0].json(), try reports[1].json())
    XCTAssertNotEqual(reports[0].trace, reports[2].trace)
    XCTAssertEqual(reports[0].violations, [])
  }

  func testACrashCostsThoseUnderWay() async {
    let greeters = Greeters()
    let service = greeters.service
    greeters.cluster.at(.seconds(10)) { service[0].crash() }
    greeters.cluster.at(.seconds(40)) { service[0].start() }
    let report = await greeters.run()
    XCTAssertEqual(report.violations, [])
    let failed = report.calls - report.succeeded
    XCTAssertLessThanOrEqual(failed, 5, "\(report)")
    XCTAssertEqual(report.failures.keys.sorted(), failed > 0 ? ["unavailable"] : [])
    // Ten seconds' share, and more: it has calls again once the backoff has let a connection be made.
    XCTAssertGreaterThan(report.servers[0].requests, 380)
  }

  /// Its calls run out of time until the connection was tested, once.
  func testAFrozenServer() async {
    let greeters = Greeters()
    let service = greeters.service
    greeters.cluster.at(.seconds(10)) { service[0].freeze() }
    greeters.cluster.at(.seconds(50)) { service[0].thaw() }
    let report = await greeters.run(for: .seconds(120))
    XCTAssertEqual(report.violations, [])
    XCTAssertEqual(Array(report.failures.keys), ["deadline_exceeded"])
    XCTAssertEqual(Double(report.calls - report.succeeded), 34, accuracy: 15)
    XCTAssertGreaterThan(report.servers[0].requests, 2_000)
  }

  func testARollingRestartLosesNothing() async {
    let greeters = Greeters(servers: 5)
    let service = greeters.service
    greeters.cluster.at(.seconds(10)) {
      service.rollingRestart(every: .seconds(5), drain: .seconds(1), downtime: .seconds(2))
    }
    let report = await greeters.run()
    XCTAssertEqual(report.violations, [])
    XCTAssertEqual(report.failures, [:])
  }

  /// No call fails, and there are few fewer calls than without renewal.
  func testServersThatRenewConnections() async {
    for policy in [BalancingPolicy.pickFirst, .roundRobin] {
      var calls: [Int] = []
      let renewals: [(Int?, Duration?)] = [(nil, nil), (1_000, nil), (10, nil), (nil, .milliseconds(300))]
      for (requests, age) in renewals {
        let greeters = Greeters(servers: 2, balancing: policy)
        greeters.cluster.network.roundTrip = .constant(.milliseconds(1))
        for server in greeters.service.servers {
          server.maximumRequestsPerConnection = requests
          server.maximumConnectionAge = age
        }
        let report = await greeters.run(
          for: .seconds(2),
          load: .closed(callers: 32, pause: .constant(.zero))
        )
        XCTAssertEqual(report.violations, [])
        XCTAssertEqual(report.failures, [:])
        calls.append(report.calls)
      }
      for renewing in calls.dropFirst() {
        XCTAssertGreaterThan(Double(renewing), 0.7 * Double(calls[0]), "\(policy): \(calls)")
      }
    }
  }

  func testAPartition() async {
    let greeters = Greeters(servers: 4, zones: ["a", "b"], timeout: .seconds(2))
    let cluster = greeters.cluster
    cluster.at(.seconds(10)) { cluster.network.partition(zone: "b", for: .seconds(30)) }
    let report = await greeters.run(for: .seconds(90))
    XCTAssertEqual(report.violations, [])
    XCTAssertEqual(Array(report.failures.keys), ["deadline_exceeded"])
    // Half of the calls for two seconds, and few afterwards.
    XCTAssertLessThan(report.calls - report.succeeded, 160, "\(report)")
    XCTAssertGreaterThan(report.servers[1].requests, 800)
  }

  func testNamesThatChange() async {
    let greeters = Greeters(servers: 4)
    let service = greeters.service
    service.resolve(to: Array(service.servers.prefix(2)))
    greeters.cluster.at(.seconds(30)) { service.resolve(to: service.servers) }
    greeters.cluster.at(.seconds(40)) { service.failResolution() }
    let report = await greeters.run()
    XCTAssertEqual(report.violations, [])
    XCTAssertEqual(report.failures, [:])
    let share = Double(report.calls) / 120
    XCTAssertEqual(Double(report.servers[0].requests), 30 * share + 15 * share, accuracy: 60)
    XCTAssertEqual(Double(report.servers[3].requests), 15 * share, accuracy: 60)
  }

  func testAServiceThatIsNotThere() async {
    let cluster = SimulatedCluster(seed: 1)
    let client = ProtocolClient(
      httpClient: cluster.httpClient(),
      config: ProtocolClientConfig(host: "https://nobody.internal", codec: JSONCodec())
    )
    let report = await cluster.run(
      for: .seconds(1),
      load: .closed(callers: 2, pause: .constant(.milliseconds(100)))
    ) { _ in
      _ = try await client.unary(.greet, Text(text: "x")).get()
    }
    XCTAssertEqual(report.violations, [])
    XCTAssertEqual(report.succeeded, 0)
    XCTAssertEqual(Array(report.failures.keys), ["unavailable"])
  }

  /// What a real server has answered comes from a simulated one.
  func testAServerThatPlaysACassette() async throws {
    let memory = InMemoryTransport()
    memory.onUnary(.greet) { request, _ in Text(text: "recorded \(request.text)") }
    let cassette = try Cassette()
    let recording = try CassetteTransport(cassette, over: memory, mode: .record)
    let recorder = ProtocolClient(
      httpClient: recording,
      config: ProtocolClientConfig(host: "http://memory", codec: JSONCodec())
    )
    for number in 1...3 { _ = try await recorder.unary(.greet, Text(text: "\(number)")).get() }
    try await recording.finish()
    let cluster = SimulatedCluster(seed: 1)
    cluster.service("greeter.internal:443", servers: 1) { server in
      server.latency = .constant(.milliseconds(10))
      server.play(cassette)
    }
    let client = ProtocolClient(
      httpClient: cluster.httpClient(),
      config: ProtocolClientConfig(host: "https://greeter.internal", codec: JSONCodec())
    )
    let report = await cluster.run(for: .milliseconds(40), load: .closed(callers: 1)) { number in
      let answer = try await client.unary(.greet, Text(text: "\(number)")).get()
      guard answer.text == "recorded \(number)" else { throw ConnectError(code: .dataLoss) }
    }
    XCTAssertEqual(report.violations, [])
    XCTAssertGreaterThanOrEqual(report.succeeded, 3)
  }

  // MARK: Load

  /// Requests wait for each other, and the queue's limit holds.
  func testAQueue() async {
    let greeters = Greeters(servers: 1, timeout: nil) { server in
      server.latency = .constant(.milliseconds(100))
      server.concurrency = 2
      server.queueLimit = 5
    }
    let report = await greeters.run(
      for: .seconds(10),
      load: .closed(callers: 10, pause: .constant(.milliseconds(10)))
    )
    XCTAssertEqual(report.violations, [])
    XCTAssertEqual(Array(report.failures.keys), ["resource_exhausted"])
    XCTAssertEqual(report.servers[0].busiest, 2)
    XCTAssertEqual(report.servers[0].longestQueue, 5)
    XCTAssertEqual(Double(report.succeeded), 207, accuracy: 10)
  }

  func testErrorsOnPurpose() async {
    let greeters = Greeters(servers: 1) { $0.fail(0.25, with: .dataLoss) }
    let report = await greeters.run()
    XCTAssertEqual(report.violations, [])
    XCTAssertEqual(report.successRate, 0.75, accuracy: 0.03)
    XCTAssertEqual(Array(report.failures.keys), ["data_loss"])
  }

  func testStreams() async {
    let greeters = Greeters(timeout: .seconds(5))
    let client = greeters.client
    let report = await greeters.cluster.run(for: .seconds(20), load: .open(perSecond: 5)) { _ in
      var numbers: [String] = []
      for try await message in client.serverStream(.countdown, Text(text: "3")).messages {
        numbers.append(message.text)
      }
      guard numbers == ["3", "2", "1"] else { throw ConnectError(code: .dataLoss) }
    }
    XCTAssertEqual(report.violations, [])
    XCTAssertEqual(report.failures, [:])
    XCTAssertEqual(report.latencies.p50 ?? 0, 310, accuracy: 5)
  }

  /// A call that waits for ever is found.
  func testCallsThatNeverEnd() async {
    let greeters = Greeters(servers: 1, timeout: nil)
    let service = greeters.service
    greeters.cluster.at(.milliseconds(500)) { service[0].freeze() }
    let report = await greeters.run(for: .seconds(1), load: .closed(callers: 3))
    XCTAssertEqual(report.failures, ["canceled": 3])
    XCTAssertEqual(report.violations.count, 1)
    XCTAssertTrue(
      report.violations.first?.contains("3 calls did not end by themselves") == true,
      "\(report.violations)"
    )
  }

  /// A frozen machine: deadlines pass unnoticed.
  func testTimersThatComeLate() async {
    let greeters = Greeters()
    let cluster = greeters.cluster
    cluster.at(.seconds(5)) { cluster.pause(for: .seconds(10)) }
    let report = await greeters.run(for: .seconds(30))
    XCTAssertEqual(report.violations, [])
    XCTAssertGreaterThan(report.succeeded, 1_500)
  }
}
