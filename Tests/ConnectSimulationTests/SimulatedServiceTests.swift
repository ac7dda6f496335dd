import Connect
import ConnectChannels
import ConnectInterceptors
import ConnectTesting
import Synchronization
import XCTest

@testable import ConnectSimulation

/// What servers and names say of themselves, the network between, and interceptors that have tasks and time of their own.
final class SimulatedServiceTests: XCTestCase {
  // MARK: Health and names

  func testUnhealthyServersGetNoCalls() async {
    let greeters = Greeters { server in
      server.health = .serving
    } configure: { channel, _ in
      channel.healthCheckedService = ""
    }
    let service = greeters.service
    greeters.cluster.at(.seconds(10)) { service[0].health = .notServing }
    greeters.cluster.at(.seconds(40)) { service[0].health = .serving }
    let report = await greeters.run()
    XCTAssertEqual(report.violations, [])
    XCTAssertEqual(report.failures, [:])
    // A third of the calls in half of the time.
    let part = Double(report.servers[0].requests) / Double(report.calls)
    XCTAssertEqual(part, 1.0 / 6, accuracy: 0.02)
  }

  /// A server without a health service counts as healthy.
  func testServersWithoutAHealthService() async {
    let greeters = Greeters(configure: { channel, _ in channel.healthCheckedService = "" })
    let report = await greeters.run(for: .seconds(10))
    XCTAssertEqual(report.violations, [])
    XCTAssertEqual(report.failures, [:])
    XCTAssertGreaterThan(report.servers.map(\.requests).min() ?? 0, 250)
  }

  /// A service that stops to know of its health is not watched any more.
  func testAHealthServiceThatGoesAway() async {
    let greeters = Greeters(servers: 2) { server in
      server.health = .notServing
    } configure: { channel, config in
      channel.healthCheckedService = ""
      config.waitForReady = true
      config.timeout = .seconds(20)
    }
    let service = greeters.service
    greeters.cluster.at(.seconds(5)) { service[1].health = nil }
    let report = await greeters.run(for: .seconds(10))
    XCTAssertEqual(report.violations, [])
    XCTAssertEqual(report.failures, [:])
    XCTAssertEqual(report.servers[0].requests, 0)
  }

  func testAServiceConfigThatComesWithTheName() async {
    let greeters = Greeters(timeout: nil)
    let service = greeters.service
    greeters.cluster.at(.seconds(5)) {
      service.serviceConfig = #"{"methodConfig":[{"name":[{}],"timeout":"0.004s"}]}"#
    }
    greeters.cluster.at(.seconds(10)) { service.serviceConfig = nil }
    let report = await greeters.run(for: .seconds(20))
    XCTAssertEqual(report.violations, [])
    XCTAssertEqual(Array(report.failures.keys), ["deadline_exceeded"])
    XCTAssertEqual(report.successRate, 0.75, accuracy: 0.03)
  }

  // MARK: The network

  /// Half of a round trip lies before the request.
  func testRequestsArriveAfterHalfOfTheRoundTrip() async {
    let cluster = SimulatedCluster(seed: 1)
    let clock = cluster.clock
    let arrivals = Mutex<[Duration]>([])
    cluster.service("greeter.internal:443", servers: 1) { server in
      server.onUnary(.greet) { request, _ in
        arrivals.withLock { $0.append(clock.now.offset) }
        return request
      }
    }
    cluster.network.roundTrip = .constant(.milliseconds(100))
    let client = ProtocolClient(
      httpClient: cluster.httpClient(),
      config: ProtocolClientConfig(host: "https://greeter.internal", codec: JSONCodec())
    )
    let ends = Mutex<[Duration]>([])
    let report = await cluster.run(
      for: .milliseconds(360),
      load: .closed(callers: 1, pause: .constant(.milliseconds(50)))
    ) { _ in
      _ = try await client.unary(.greet, Text(text: "x")).get()
      ends.withLock { $0.append(clock.now.offset) }
    }
    XCTAssertEqual(report.violations, [])
    // Two round trips for the connection.
    XCTAssertEqual(arrivals.withLock { $0 }, [.milliseconds(250), .milliseconds(400)])
    XCTAssertEqual(ends.withLock { $0 }, [.milliseconds(300), .milliseconds(450)])
  }

  /// A response that is ready while the zones are separated comes when they are together again.
  func testResponsesDoNotPassAPartition() async {
    let greeters = Greeters(servers: 1, zones: ["b"], timeout: nil) { $0.latency = .constant(.seconds(1)) }
    let cluster = greeters.cluster
    cluster.at(.milliseconds(500)) { cluster.network.partition(zone: "b", for: .seconds(3)) }
    let report = await greeters.run(for: .milliseconds(100), load: .closed(callers: 1))
    XCTAssertEqual(report.violations, [])
    XCTAssertEqual(report.succeeded, 1)
    XCTAssertEqual(report.latencies.maximum ?? 0, 3_500, accuracy: 40)
  }

  /// Messages of streams do not, either; a connection on which nothing gets through for too long is lost.
  func testStreamsDoNotPassAPartition() async {
    let greeters = Greeters(servers: 1, zones: ["b"], timeout: nil)
    let cluster = greeters.cluster
    let client = greeters.client
    cluster.at(.milliseconds(250)) { cluster.network.partition(zone: "b", for: .seconds(60)) }
    let count = Atomic(0)
    let report = await cluster.run(for: .milliseconds(10), load: .closed(callers: 1)) { _ in
      for try await _ in client.serverStream(.countdown, Text(text: "9")).messages {
        count.add(1, ordering: .relaxed)
      }
    }
    XCTAssertEqual(report.violations, [])
    XCTAssertEqual(report.failures, ["unavailable": 1])
    XCTAssertEqual(count.load(ordering: .relaxed), 3)
  }

  /// What has come to a server before is worked on, and its answer is lost.
  func testARequestThatHasArrivedIsWorkedOn() async {
    let count = Atomic(0)
    let cluster = SimulatedCluster(seed: 1)
    cluster.service("greeter.internal:443", servers: 1, zones: ["b"]) { server in
      server.latency = .constant(.seconds(1))
      server.onUnary(.greet) { request, _ in
        count.add(1, ordering: .relaxed)
        return request
      }
    }
    let client = ProtocolClient(
      httpClient: cluster.httpClient(),
      config: ProtocolClientConfig(host: "https://greeter.internal", codec: JSONCodec())
    )
    cluster.at(.milliseconds(500)) { cluster.network.partition(zone: "b", for: .seconds(60)) }
    let ends = Mutex<[Duration]>([])
    let clock = cluster.clock
    let report = await cluster.run(for: .milliseconds(1), load: .closed(callers: 1)) { _ in
      defer { ends.withLock { $0.append(clock.now.offset) } }
      _ = try await client.unary(.greet, Text(text: "x")).get()
    }
    XCTAssertEqual(report.violations, [])
    XCTAssertEqual(report.failures, ["unavailable": 1])
    XCTAssertEqual(count.load(ordering: .relaxed), 1)
    // The server has sent its answer after a second, and nobody has acknowledged it.
    XCTAssertEqual(ends.withLock { $0 }, [.seconds(21)])
  }

  /// A server is not busy with what is on its way.
  func testTheWayBackTakesNobodysPlace() async {
    let greeters = Greeters(servers: 1, timeout: nil) { server in
      server.latency = .constant(.milliseconds(10))
      server.concurrency = 1
    }
    greeters.cluster.network.roundTrip = .constant(.seconds(1))
    let report = await greeters.run(for: .seconds(20), load: .closed(callers: 20))
    XCTAssertEqual(report.violations, [])
    XCTAssertEqual(report.servers[0].busiest, 1)
    // Each caller makes a call in little more than a second.
    XCTAssertGreaterThan(report.succeeded, 280)
  }

  /// A change takes as long as any other to be known.
  func testServiceConfigsComeInTheirOrder() async {
    let greeters = Greeters(timeout: nil)
    let service = greeters.service
    service.nameDelay = .seconds(5)
    greeters.cluster.at(.seconds(1)) {
      service.serviceConfig = #"{"methodConfig":[{"name":[{}],"timeout":"0.004s"}]}"#
    }
    greeters.cluster.at(.seconds(4)) { service.serviceConfig = nil }
    let report = await greeters.run(for: .seconds(60))
    XCTAssertEqual(report.violations, [])
    for interval in report.intervals {
      let isShort = interval.start >= 6 && interval.start < 9
      XCTAssertEqual(interval.succeeded == 0, isShort, "\(interval)")
    }
  }

  func testACallThatIsNotInACassette() async throws {
    let cassette = try Cassette(
      text: #"""
        {"cassette": 1, "exchanges": [
          {"call": "/test.Greeter/Greet", "http": "POST", "over": "HTTP/2", "wire": "connect+json", "headers": {},
            "parts": [
            {"send": {"json": {"text": "a"}}}, {"finish": {}},
            {"head": {"status": 200, "headers": {"content-type": "application/json"}}},
            {"receive": {"json": {"text": "b"}}}, {"end": {}}
          ]}
        ]}
        """#
    )
    let cluster = SimulatedCluster(seed: 1)
    cluster.service("greeter.internal:443", servers: 1) { $0.play(cassette) }
    let client = ProtocolClient(
      httpClient: cluster.httpClient(),
      config: ProtocolClientConfig(host: "https://greeter.internal", codec: JSONCodec())
    )
    let report = await cluster.run(for: .milliseconds(2), load: .closed(callers: 1)) { number in
      _ = try await client.unary(.greet, Text(text: number == 1 ? "a" : "c")).get()
    }
    XCTAssertEqual(report.violations, [])
    XCTAssertEqual(report.succeeded, 1)
    XCTAssertEqual(Array(report.failures.keys), ["failed_precondition"])
    XCTAssertFalse(cassette.missingCalls.isEmpty)
  }

  // MARK: The end

  /// Connections, attempts, timers and health checks that are there at the end of a run go with the cluster, also where the client
  /// is let go of last.
  func testNothingIsLeftOfACluster() async {
    func run() async -> () -> AnyObject? {
      let greeters = Greeters { server in
        server.health = .serving
      } configure: { channel, _ in
        channel.healthCheckedService = ""
      }
      greeters.service[2].freeze()
      let report = await greeters.run(for: .seconds(2))
      XCTAssertEqual(report.violations, [])
      XCTAssertEqual(report.failures, [:])
      weak let server = greeters.service[0]
      weak let cluster = greeters.cluster
      weak let executor = greeters.cluster.executor
      return { server ?? cluster ?? executor }
    }
    let rest = await run()
    // The thread of the run lets go of the cluster when it ends, a little later.
    for _ in 0..<500 where rest() != nil { try? await Task.sleep(for: .milliseconds(10)) }
    XCTAssertNil(rest())
  }

  // MARK: Interceptors with a clock

  /// One refresh for all, whose provider sleeps in virtual time; twice the same.
  func testCredentials() async {
    func run() async -> (SimulationReport, refreshes: Int) {
      let refreshes = Mutex(0)
      let valid = Mutex("1")
      let cluster = SimulatedCluster(seed: 5)
      cluster.service("greeter.internal:443", servers: 2) { server in
        server.latency = .exponential(mean: .milliseconds(10))
        server.onUnary(.greet) { request, context in
          guard context.requestHeaders.first("authorization") == valid.withLock({ "Bearer \($0)" }) else {
            throw ConnectError(code: .unauthenticated, message: "log in first")
          }
          return request
        }
      }
      let clock = cluster.clock
      let credentials = Credentials(for: ["greeter.internal"], clock: clock) { _ in
        refreshes.withLock { $0 += 1 }
        try await clock.sleep(for: .milliseconds(200))
        return AccessToken(valid.withLock { $0 }, expiresIn: .seconds(3_600))
      }
      let client = ProtocolClient(
        httpClient: cluster.httpClient(),
        config: ProtocolClientConfig(
          host: "https://greeter.internal",
          codec: JSONCodec(),
          interceptors: [{ _ in CredentialsInterceptor(credentials) }],
          timeout: .seconds(1)
        )
      )
      cluster.at(.seconds(10)) { valid.withLock { $0 = "2" } }
      let report = await cluster.run(for: .seconds(20), load: .open(perSecond: 50)) { _ in
        _ = try await client.unary(.greet, Text(text: "x")).get()
      }
      return (report, refreshes.withLock { $0 })
    }
    let first = await run()
    let second = await run()
    XCTAssertEqual(first.0, second.0)
    XCTAssertEqual(first.0.violations, [])
    XCTAssertEqual(first.0.failures, [:])
    XCTAssertEqual(first.refreshes, 2)
    XCTAssertGreaterThan(first.0.latencies.maximum ?? 0, 200)
  }

  /// Calls wait for their turn in virtual time, and not for longer than they may.
  func testAConcurrencyLimit() async {
    func run() async -> SimulationReport {
      let limiter = Mutex<ConcurrencyLimiter?>(nil)
      let greeters = Greeters(
        servers: 1,
        interceptors: [
          { _ in
            ConcurrencyLimitInterceptor(
              limiter.withLock { $0 } ?? ConcurrencyLimiter(maximumCalls: 1, maximumWaiting: 0)
            )
          }
        ]
      ) {
        $0.latency = .constant(.milliseconds(100))
      }
      let clock = greeters.cluster.clock
      limiter.withLock {
        $0 = ConcurrencyLimiter(
          maximumCalls: 2,
          maximumWaiting: 100,
          maximumWait: .milliseconds(250),
          clock: clock
        )
      }
      return await greeters.run(for: .seconds(20), load: .open(perSecond: 30))
    }
    let first = await run()
    let second = await run()
    XCTAssertEqual(first, second)
    XCTAssertEqual(first.violations, [])
    XCTAssertEqual(Array(first.failures.keys), ["resource_exhausted"])
    XCTAssertLessThanOrEqual(first.latencies.maximum ?? 0, 351)
    XCTAssertEqual(first.servers[0].busiest, 2)
    // As many as two at a time can be.
    XCTAssertEqual(Double(first.succeeded), 400, accuracy: 15)
  }
}
