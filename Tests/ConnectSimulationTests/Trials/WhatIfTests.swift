import Connect
import ConnectChannels
import NIOCore
import XCTest

@testable import ConnectSimulation

final class WhatIfTests: XCTestCase {
  private static let retries = #"""
    { "methodConfig": [{ "name": [{}], "timeout": "1s", "retryPolicy": { "maxAttempts": 3, "initialBackoff": "0.01s", "maxBackoff": "0.1s",
      "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"] } }],
      "loadBalancingConfig": [{ "round_robin": {} }] }
    """#
  private static let timeouts = #"{ "methodConfig": [{ "name": [{}], "timeout": "1s" }] }"#

  private func service(failing rate: Double = 0.01, servers: Int = 5) async throws -> FittedService {
    FittedService(
      try await FittedServiceTests.trace(servers: servers) { _, server in
        server.latency = .logNormal(median: .milliseconds(5), p99: .milliseconds(40))
        server.fail(rate)
      }
    )
  }

  private func question(_ service: FittedService, _ changes: [WhatIf.Change] = [], new: String? = nil) throws
    -> WhatIf
  {
    var question = WhatIf(
      service,
      now: try ServiceConfig(json: Self.timeouts),
      new: try new.map { try ServiceConfig(json: $0) },
      changes: changes
    )
    question.duration = .seconds(10)
    question.seedCount = 2
    return question
  }

  func testANewPolicy() async throws {
    let question = try self.question(try await self.service(), new: Self.retries)
    let result = try await question.run()
    XCTAssertEqual(result.trials.map(\.name), ["now", "new"])
    let (now, new) = (result.trials[0], result.trials[1])
    XCTAssertEqual(now.successRate, 0.99, accuracy: 0.005)
    XCTAssertEqual(now.attemptsPerCall, 1, accuracy: 1e-9)
    XCTAssertGreaterThan(new.successRate, 0.999)
    XCTAssertEqual(new.attemptsPerCall, 1.01, accuracy: 0.005)
    XCTAssertEqual(result.trials.flatMap { $0.runs.flatMap(\.violations) }, [])
    // The fit: as recorded.
    let all = try XCTUnwrap(result.quality.first)
    XCTAssertEqual(all.predicted.p50 ?? 0, all.recorded.p50 ?? 1, accuracy: (all.recorded.p50 ?? 1) * 0.1)
    XCTAssertEqual(all.predicted.p99 ?? 0, all.recorded.p99 ?? 1, accuracy: (all.recorded.p99 ?? 1) * 0.2)
    // The same seeds, the same result; other seeds, another.
    let again = try await question.run()
    XCTAssertEqual(again, result)
    XCTAssertEqual(try again.json(), try result.json())
    var other = question
    other.seed = 77
    let different = try await other.run()
    XCTAssertNotEqual(different.trials[0].runs[0].trace, now.runs[0].trace)
  }

  func testFaults() async throws {
    let service = try await self.service(failing: 0)
    for (change, success) in [
      (.freeze(server: 1), 0.97), (.slow(server: 1, by: 1_000), 0.8), (.slow(server: 1, by: 2), 1),
      (.remove(server: 1), 1),
      (.load(times: 3), 1), (.rollout(drain: .seconds(1), downtime: .seconds(1)), 1),
    ] as [(WhatIf.Change, Double)] {
      let result = try await self.question(service, [change]).run()
      XCTAssertEqual(result.trials.map(\.name), ["now", "changed"])
      XCTAssertEqual(result.trials[1].successRate, success, accuracy: 0.04, "\(change)")
      XCTAssertEqual(result.trials.flatMap { $0.runs.flatMap(\.violations) }, [], "\(change)")
      let ratio = Double(result.trials[1].runs[0].calls) / Double(result.trials[0].runs[0].calls)
      XCTAssertEqual(ratio, change == .load(times: 3) ? 3 : 1, accuracy: 0.2)
    }
  }

  func testAZone() async throws {
    var question = try self.question(
      try await self.service(failing: 0, servers: 4),
      [.loseZone("b")],
      new: Self.retries
    )
    question.zones = ["a", "b"]
    question.changeTime = .seconds(5)
    let result = try await question.run()
    XCTAssertEqual(result.trials.map(\.name), ["now", "now, changed", "new, changed"])
    XCTAssertGreaterThan(result.trials[2].successRate, 0.99)
    XCTAssertTrue("\(result)".contains("new, changed"), "\(result)")
    question.changes = [.loseZone("z")]
    do {
      _ = try await question.run()
      XCTFail("there is no zone z")
    } catch let error as WhatIfError { XCTAssertTrue("\(error)".contains("the zones are a, b")) }
  }

  func testWhatDoesNotFit() async throws {
    var service = try await self.service()
    for change in [.freeze(server: 9), .slow(server: -1, by: 2), .remove(server: 5)] as [WhatIf.Change] {
      do {
        _ = try await self.question(service, [change]).run()
        XCTFail("\(change)")
      } catch let error as WhatIfError { XCTAssertTrue("\(error)".contains("the service has 5"), "\(error)") }
    }
    service.callsPerSecond = 0
    do {
      _ = try await self.question(service).run()
      XCTFail("without load")
    } catch let error as WhatIfError { XCTAssertTrue("\(error)".contains("has no times"), "\(error)") }
  }

  func testChangesAfterTheEnd() async throws {
    var question = try self.question(try await self.service(), [.freeze(server: 0)])
    question.changeTime = question.duration
    do {
      _ = try await question.run()
      XCTFail("nothing would change")
    } catch let error as WhatIfError {
      XCTAssertTrue("\(error)".contains("let them come earlier"), "\(error)")
    }
  }

  /// More methods than are counted on their own are simulated as one.
  func testManyMethods() async throws {
    let lines = (0..<3_000).map {
      #"{"time":\#(1_795_766_400 + $0 / 100),"method":"/a.B/M\#($0)","duration_ms":5,"code":0}"#
    }
    var question = WhatIf(FittedService(try TrafficTrace(text: lines.joined(separator: "\n"))))
    question.duration = .seconds(10)
    question.seedCount = 1
    let result = try await question.run()
    XCTAssertEqual(result.trials[0].successRate, 1)
    XCTAssertTrue(
      result.notes.contains { $0.contains("more than 1,000 methods: 2,000 calls") },
      "\(result.notes)"
    )
    let others = try XCTUnwrap(result.quality.first { $0.method == TrafficTrace.others })
    XCTAssertEqual(others.predicted.p50 ?? 0, 5, accuracy: 0.2)
  }

  /// A bad fit, and too few calls, are said in words: nobody compares all columns.
  func testDoubts() {
    func row(_ calls: Int, _ p90: Double) -> WhatIfResult.Quality {
      .init(
        method: "all",
        calls: calls,
        recorded: .init(p50: 10, p90: 20, p99: 90, failureRate: 0),
        predicted: .init(p50: 10, p90: p90, p99: 30, failureRate: 0)
      )
    }
    XCTAssertEqual(FitQuality.doubts([row(1_000, 21)], trialCalls: 1_000), [])
    let bad = FitQuality.doubts([row(1_000, 30)], trialCalls: 1_000)
    XCTAssertEqual(bad.count, 1)
    XCTAssertTrue(bad[0].contains("p90 was 20 ms and is 30 ms"), bad[0])
    XCTAssertTrue(FitQuality.doubts([row(9_000, 20)], trialCalls: 9_000)[0].contains("p99 was 90 ms"))
    XCTAssertTrue(FitQuality.doubts([row(1_000, 30)], trialCalls: 3)[0].contains("only 3 calls"))
  }

  /// What is predicted of a recording without a fault is what another service then does with the fault.
  func testPredictions() async throws {
    let latency = Latency.logNormal(median: .milliseconds(10), p99: .milliseconds(60))
    let trace = try await FittedServiceTests.trace(servers: 10, seconds: 120) { _, server in
      server.latency = latency
    }
    let config = try ServiceConfig(json: Self.retries)
    for change in [.freeze(server: 3), .slow(server: 3, by: 10), .remove(server: 3)] as [WhatIf.Change] {
      var question = WhatIf(FittedService(trace), now: config, changes: [change])
      question.seed = 40
      question.seedCount = 1
      let predicted = try await question.run().trials[1]
      let greeters = Greeters(seed: 5, servers: 10, timeout: nil) { server in
        server.latency = latency
        server.onUnary(.bytes("/test.Greeter/Greet")) { _, _ in ByteBuffer() }
      }
      let server = greeters.service[3]
      greeters.cluster.at(.seconds(1)) {
        switch change {
        case .freeze: server.freeze()
        case .slow(_, let factor): server.slow(by: factor)
        default: server.crash()
        }
      }
      let client = ProtocolClient.policed(by: config, nil, host: "greeter.internal", in: greeters.cluster)
      let measured = await greeters.cluster.run(for: .seconds(60), load: .open(perSecond: 100)) { _ in
        _ = try await client.unary(.bytes("/test.Greeter/Greet"), ByteBuffer()).get()
      }
      XCTAssertEqual(predicted.successRate, measured.successRate, accuracy: 0.01, "\(change)")
      XCTAssertEqual(predicted.attemptsPerCall / measured.requestsPerCall, 1, accuracy: 0.03, "\(change)")
      let p99 = (predicted.p99 ?? 0) / (measured.latencies.p99 ?? 1)
      XCTAssertEqual(p99, 1, accuracy: 0.15, "\(change)")
    }
  }
}
