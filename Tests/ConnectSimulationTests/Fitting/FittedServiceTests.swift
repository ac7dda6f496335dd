import Connect
import ConnectChannels
import ConnectTesting
import Synchronization
import XCTest

@testable import ConnectSimulation

final class FittedServiceTests: XCTestCase {
  /// A trace of a simulated service: what a proxy in front of its clients would log.
  static func trace(
    servers: Int = 4,
    seconds: Double = 60,
    load: SimulatedLoad = .open(perSecond: 100),
    _ setup: (Int, SimulatedServer) -> Void
  ) async throws -> TrafficTrace {
    let log = Recording()
    var index = 0
    let greeters = Greeters(seed: 9, servers: servers, timeout: nil) { server in
      let name = "server-\(index)"
      server.onUnary(.greet) { _, _ in Text(text: name) }
      setup(index, server)
      index += 1
    }
    let (client, clock) = (greeters.client, greeters.cluster.clock)
    let report = await greeters.cluster.run(for: .seconds(seconds), load: load) { _ in
      let start = clock.now.offset
      let response = await client.unary(.greet, Text(text: ""))
      log.add(
        start,
        clock.now.offset - start,
        response.error?.code,
        response.message?.text ?? response.error?.message
      )
    }
    XCTAssertEqual(report.violations, [])
    return try TrafficTrace(text: log.text)
  }

  private func quantiles(_ latency: Latency, _ parts: [Double]) -> [Double] {
    var random = SeededRandom(seed: 4)
    let times = (0..<20_000).map { _ in latency.sample(&random).seconds }.sorted()
    return parts.map { times[min(Int($0 * 20_000), 19_999)] }
  }

  func testAKnownDistribution() async throws {
    let latency = Latency.logNormal(median: .milliseconds(10), p99: .milliseconds(100))
    let trace = try await Self.trace(seconds: 100) { _, server in
      server.latency = latency
      server.fail(0.02, with: .aborted)
    }
    let service = FittedService(trace)
    XCTAssertEqual(service.servers.map(\.name), ["server-0", "server-1", "server-2", "server-3"])
    XCTAssertNil(service.concurrency)
    XCTAssertEqual(service.callsPerSecond, 100, accuracy: 3)
    XCTAssertEqual(service.rates.count, 20)
    for rate in service.rates { XCTAssertEqual(rate, 100, accuracy: 25) }
    let method = try XCTUnwrap(service.methods.first)
    XCTAssertEqual(method.path, "/test.Greeter/Greet")
    XCTAssertEqual(method.share, 1, accuracy: 1e-9)
    XCTAssertEqual(method.failures.map(\.code), [.aborted])
    XCTAssertEqual(method.failures.first?.rate ?? 0, 0.02, accuracy: 0.006)
    let parts = [0.1, 0.5, 0.9, 0.99]
    for (found, exact) in zip(self.quantiles(method.latency, parts), self.quantiles(latency, parts)) {
      XCTAssertEqual(found / exact, 1, accuracy: 0.1)
    }
  }

  /// Latency rises with load: the limit is found, and the time of the work without the queue.
  func testAConcurrencyLimit() async throws {
    let trace = try await Self.trace(
      servers: 2,
      seconds: 240,
      load: .open(perSecond: [60, 120, 180, 60, 200, 220], each: .seconds(10))
    ) { _, server in
      server.latency = .exponential(mean: .milliseconds(30))
      server.concurrency = 4
    }
    let service = FittedService(trace)
    let limit = try XCTUnwrap(service.concurrency, service.notes.joined())
    XCTAssertTrue((3...5).contains(limit), "\(limit)")
    let median = self.quantiles(try XCTUnwrap(service.methods.first).latency, [0.5])[0]
    XCTAssertEqual(median, 0.030 * 0.693, accuracy: 0.005)
  }

  func testNoLimitWhereNobodyWaits() async throws {
    let trace = try await Self.trace(
      seconds: 100,
      load: .open(perSecond: [20, 100, 200, 300], each: .seconds(5))
    ) { _, server in server.latency = .exponential(mean: .milliseconds(30)) }
    XCTAssertNil(FittedService(trace).concurrency)
  }

  func testServersThatDiffer() async throws {
    let trace = try await Self.trace(seconds: 100) { index, server in
      server.latency = .exponential(mean: .milliseconds(10))
      if index == 1 { server.slow(by: 4) }
      guard index == 2 else { return }
      let count = Mutex(0)
      server.onUnary(.greet) { _, _ in
        // Every third call.
        let isBad = count.withLock { count in
          count += 1
          return count % 3 == 0
        }
        guard !isBad else { throw ConnectError(code: .unavailable, message: "server-2") }
        return Text(text: "server-2")
      }
    }
    let service = FittedService(trace, servers: 6)
    XCTAssertEqual(service.servers.map(\.methods.isEmpty), [true, false, false, true, true, true])
    XCTAssertEqual(service.servers[5].name, "server 6")
    let usual = self.quantiles(try XCTUnwrap(service.methods.first).latency, [0.5])[0]
    let slow = self.quantiles(try XCTUnwrap(service.servers[1].methods.first).latency, [0.5])[0]
    XCTAssertEqual(slow / usual, 4, accuracy: 0.5)
    // The others do not have its times, nor the failures of the bad one.
    XCTAssertEqual(usual, 0.00693, accuracy: 0.0007)
    XCTAssertEqual(service.methods.first?.failures, [])
    XCTAssertEqual(service.servers[2].methods.first?.failures.first?.rate ?? 0, 1.0 / 3, accuracy: 0.01)
  }

  /// Times of two kinds, and peaks of a second: no server differs, but the simulation does.
  func testPhasesAndPeaks() throws {
    var lines: [String] = []
    for second in 0..<120 {
      for number in 0..<(second % 20 == 19 ? 400 : 10) {
        let time = second < 60 ? 10 : 200
        lines.append(
          #"{"time":\#(1_795_766_400 + second),"method":"/a.B/C","duration_ms":\#(time),"code":0,"server":"s\#((number + second) % 4)"}"#
        )
      }
    }
    let service = FittedService(try TrafficTrace(text: lines.joined(separator: "\n")))
    XCTAssertTrue(service.servers.allSatisfy(\.methods.isEmpty), "\(service.notes)")
    XCTAssertTrue(service.notes.contains { $0.contains("peaks as short are left out") }, "\(service.notes)")
    XCTAssertTrue(service.notes.contains { $0.contains("with no more load") }, "\(service.notes)")
    XCTAssertFalse(service.notes.contains { $0.contains("to all servers alike") }, "\(service.notes)")
    let rare =
      #"{"time":1795766519,"method":"/a.B/C","duration_ms":10,"code":0,"server":"rare"}"#
    let uneven = FittedService(try TrafficTrace(text: (lines + [rare]).joined(separator: "\n")))
    XCTAssertTrue(uneven.notes.contains { $0.contains("% (rare) to ") }, "\(uneven.notes)")
  }

  /// The mean of a trace with a long gap is no load that there was. Calls that seldom come have a mean all the same.
  func testGaps() throws {
    for (isSparse, time) in [
      (false, { $0 / 10 + ($0 < 1_000 ? 0 : 3_600) }), (true, { $0 * 7 }),
    ] as [(Bool, (Int) -> Int)] {
      let lines = (0..<2_000).map { number in
        #"{"time":\#(1_795_766_400 + time(number)),"method":"/a.B/C","duration_ms":10,"code":0,"server":"s"}"#
      }
      let service = FittedService(try TrafficTrace(text: lines.joined(separator: "\n")))
      XCTAssertEqual(service.notes.contains { $0.hasPrefix("calls came in") }, !isSparse, "\(service.notes)")
    }
  }

  /// A server that is slow has few calls of each method, but it is slow with all of them, whatever it has most calls of.
  func testASlowServerWithFewCallsOfEachMethod() throws {
    var lines: [String] = []
    for number in 0..<900 {
      let (server, method) = (number % 3, number / 3 % 8)
      let time = Double((method + 1) * (server == 2 ? 40 : 10))
      lines.append(
        #"{"time":\#(1_795_766_400 + number / 10),"method":"/a.B/M\#(method)","duration_ms":\#(time),"code":0,"server":"s\#(server)"}"#
      )
    }
    let service = FittedService(try TrafficTrace(text: lines.joined(separator: "\n")))
    XCTAssertEqual(service.servers.map(\.methods.count), [0, 0, 8])
    XCTAssertTrue(
      service.notes.contains { $0.hasPrefix("s2 takes 4") || $0.hasPrefix("s2 takes 3.9") },
      "\(service.notes)"
    )
    for method in service.methods {
      let slow = try XCTUnwrap(service.servers[2].methods.first { $0.path == method.path })
      let (usual, slower) = (self.quantiles(method.latency, [0.5])[0], self.quantiles(slow.latency, [0.5])[0])
      XCTAssertEqual(slower / usual, 4, accuracy: 0.3)
    }
  }

  func testAnEmpiricalLatency() {
    let latency = Latency.empirical([.milliseconds(30), .milliseconds(10), .milliseconds(20)])
    let found = self.quantiles(latency, [0, 0.25, 0.5, 0.75, 1])
    for (one, two) in zip(found, [0.010, 0.015, 0.020, 0.025, 0.030]) {
      XCTAssertEqual(one, two, accuracy: 0.0004)
    }
    XCTAssertEqual(Latency.empirical([]), .none)
    XCTAssertEqual(Latency.empirical([.seconds(2)]), .constant(.seconds(2)))
    let many = Latency.empirical((0..<5_000).map { .milliseconds($0) })
    XCTAssertEqual(self.quantiles(many, [0.5])[0], 2.5, accuracy: 0.05)
    var (one, two) = (SeededRandom(seed: 3), SeededRandom(seed: 3))
    XCTAssertEqual(many.sample(&one), many.sample(&two))
  }
}

/// Log lines of a simulation.
final class Recording: @unchecked Sendable {
  /// `@unchecked Sendable`: touched on the simulation's executor, and after the run.
  private var lines: [String] = []

  func add(_ start: Duration, _ duration: Duration, _ code: Code?, _ server: String?) {
    let end = 1_795_766_400 + (start + duration).seconds
    let name = server.flatMap { $0.hasPrefix("server-") ? #","server":"\#($0)""# : nil } ?? ""
    self.lines.append(
      #"{"time":\#(end),"method":"/test.Greeter/Greet","duration_s":\#(duration.seconds),"code":"\#(code?.name ?? "ok")"\#(name)}"#
    )
  }

  var text: String { self.lines.joined(separator: "\n") }
}
