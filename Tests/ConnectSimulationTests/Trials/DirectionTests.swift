import Connect
import ConnectChannels
import XCTest

@testable import ConnectSimulation

/// Which way figures go when servers get busier: a table of a trial that says the opposite would do harm.
final class DirectionTests: XCTestCase {
  private static let now = #"{ "methodConfig": [{ "name": [{}], "timeout": "2s" }] }"#

  private static func hedging(after delay: String) -> String {
    #"""
    { "methodConfig": [{ "name": [{}], "timeout": "2s", "hedgingPolicy": { "maxAttempts": 2, "hedgingDelay": "\#(delay)",
      "nonFatalStatusCodes": ["UNAVAILABLE"] } }] }
    """#
  }

  /// Four servers in two zones, each of which works on two requests at a time: 40 % of what they can do.
  private static func service() throws -> FittedService {
    var random = SeededRandom(seed: 7)
    let lines = (0..<3_000).map { number in
      // 30 ms mostly, and 150 ms for 7 calls in 100.
      let milliseconds = (random.fraction() < 0.07 ? 150 : 30) * (0.9 + 0.2 * random.fraction())
      return
        #"{"time":\#(1_795_766_400 + Double(number) / 80),"method":"/a.B/C","duration_ms":\#(milliseconds),"code":0,"#
        + #""server":"s\#(number % 4)","zone":"\#(number % 4 < 2 ? "a" : "b")"}"#
    }
    var service = FittedService(try TrafficTrace(text: lines.joined(separator: "\n")))
    service.concurrency = 2
    return service
  }

  private func run(
    _ changes: [WhatIf.Change],
    new: String? = nil,
    _ change: (inout WhatIf) -> Void = { _ in }
  ) async throws -> WhatIfResult {
    var question = WhatIf(
      try Self.service(),
      now: try ServiceConfig(json: Self.now),
      new: try new.map { try ServiceConfig(json: $0) },
      changes: changes
    )
    question.duration = .seconds(15)
    question.seedCount = 1
    question.followsRecordedRates = false
    change(&question)
    let result = try await question.run()
    XCTAssertEqual(result.trials.flatMap { $0.runs.flatMap(\.violations) }, [])
    return result
  }

  /// With room on the servers, hedging cuts the tail; without, it doubles the requests, and all calls wait.
  func testHedging() async throws {
    let quiet = try await self.run([.load(times: 0.3)], new: Self.hedging(after: "0.05s"))
    let (now, new) = (quiet.trials[1], quiet.trials[2])
    XCTAssertLessThan(new.p99 ?? .infinity, (now.p99 ?? 0) * 0.9)
    XCTAssertEqual(new.successRate, 1)

    let busy = try await self.run([.load(times: 2.3)], new: Self.hedging(after: "0.05s"))
    let (before, queued, hedged) = (busy.trials[0], busy.trials[1], busy.trials[2])
    // More load alone makes a queue.
    XCTAssertGreaterThan(queued.p99 ?? 0, (before.p99 ?? .infinity) * 1.2)
    XCTAssertGreaterThan(queued.successRate, 0.9)
    XCTAssertGreaterThan(hedged.attemptsPerCall, 1.4)
    XCTAssertGreaterThan(hedged.p50 ?? 0, (queued.p50 ?? .infinity) * 2)
    XCTAssertLessThan(hedged.successRate, queued.successRate)
  }

  /// Nothing fails, and the servers that are there have the load of those that are not.
  func testARollout() async throws {
    let load = WhatIf.Change.load(times: 1.6)
    let result = try await self.run([load, .rollout(drain: .seconds(1), downtime: .seconds(1))])
    let (now, changed) = (try await self.run([load]).trials[1], result.trials[1])
    XCTAssertEqual(changed.successRate, 1, accuracy: 0.005)
    XCTAssertEqual(changed.attemptsPerCall, 1, accuracy: 0.01)
    XCTAssertGreaterThan(changed.p99 ?? 0, (now.p99 ?? .infinity) * 1.05)
    XCTAssertFalse(result.notes.contains { $0.contains("at the same time") }, "\(result.notes)")
    // Too short for one after the other.
    let short = try await self.run([.rollout(drain: .seconds(1), downtime: .seconds(2))]) {
      $0.duration = .seconds(6)
    }
    XCTAssertTrue(
      short.notes.contains { $0.contains("up to 3 of 4 servers away at the same time") },
      "\(short.notes)"
    )
  }

  /// The zones are those of the trace.
  func testALostZone() async throws {
    let result = try await self.run([.loseZone("b")])
    let (now, changed) = (result.trials[0], result.trials[1])
    XCTAssertGreaterThan(changed.successRate, 0.9)
    XCTAssertGreaterThan(changed.p99 ?? 0, (now.p99 ?? .infinity) * 1.2)
    XCTAssertEqual(result.servers.count, 4)
    // Zones that are given count in place of those of the trace, and clients are in all of them.
    var question = WhatIf(try Self.service())
    XCTAssertEqual(question.serverZones, ["a", "a", "b", "b"])
    XCTAssertEqual(question.clientZones, ["a", "b"])
    question.service.servers[0].zone = nil
    XCTAssertEqual(question.serverZones, ["(none)", "a", "b", "b"])
    XCTAssertEqual(question.clientZones, ["a", "b"])
    question.zones = ["x", "y"]
    XCTAssertEqual(question.serverZones, ["x", "y", "x", "y"])
    XCTAssertEqual(question.clientZones, ["x", "y"])
    do {
      _ = try await self.run([.loseZone("x")])
      XCTFail("there is no zone x")
    } catch let error as WhatIfError {
      XCTAssertTrue("\(error)".contains("no server is in zone \"x\": the zones are a, b"), "\(error)")
    }
  }

  /// Who knows no limit learns nothing about load, and is told so.
  func testWithoutALimit() async throws {
    for (change, warns) in [
      (.load(times: 2), true), (.load(times: 0.5), false), (.loseZone("a"), true),
      (.slow(server: 0, by: 2), false),
    ] as [(WhatIf.Change, Bool)] {
      let result = try await self.run([change]) { question in
        question.service.concurrency = nil
        question.duration = .seconds(2)
      }
      XCTAssertEqual(
        result.notes.contains { $0.contains("no limit of concurrency here") },
        warns,
        "\(change)"
      )
    }
  }

  /// The table says of which calls its times are, and how many failed.
  func testWordsOfTheTable() async throws {
    let result = try await self.run([.load(times: 4)]) { $0.duration = .seconds(5) }
    let lines = "\(result)".split(separator: "\n")
    XCTAssertTrue(lines.contains { $0.hasPrefix("p50 / p99 of successes ") }, "\(result)")
    let failed = try XCTUnwrap(lines.first { $0.hasPrefix("failed ") }).split(separator: " ")
    let codes = lines.filter { $0.hasPrefix("  deadline_exceeded ") }
    XCTAssertEqual(codes.count, 1)
    XCTAssertEqual(codes.first?.split(separator: " ").dropFirst(), failed.dropFirst())
    let quiet = try await self.run([]) { $0.duration = .seconds(2) }
    XCTAssertTrue(
      "\(quiet)".split(separator: "\n").contains { $0.hasPrefix("failed ") && $0.hasSuffix(" -") }
    )
  }
}
