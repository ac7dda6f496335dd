internal import ConnectChannels
internal import ConnectSimulation
internal import LoopbackServer
internal import XCTest

/// Predictions for a policy that was never tried, from a log that was recorded without it, against what then happens to ten servers
/// of grpcio.
final class TrialTests: XCTestCase {
  private static let calls = 4_000
  private static let rate = 400.0
  private static let (median, spread) = (Duration.milliseconds(40), 0.4)
  private static let now = #"{"methodConfig": [{"name": [{}], "timeout": "1s"}]}"#
  private static func hedging(after delay: String) -> String {
    #"{"methodConfig": [{"name": [{}], "timeout": "1s", "hedgingPolicy": {"maxAttempts": 2, "hedgingDelay": "\#(delay)"}}]}"#
  }
  private static let retries = """
    {"methodConfig": [{"name": [{}], "timeout": "1s", "retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.01s",
      "maxBackoff": "0.1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]}
    """

  func testPredictions() async throws {
    var mistakes = try await self.mistakes()
    // Another program may have taken the processors meanwhile.
    if !mistakes.isEmpty { mistakes = try await self.mistakes() }
    for mistake in mistakes { XCTFail(mistake) }
  }

  /// What was measured and not predicted.
  private func mistakes() async throws -> [String] {
    var mistakes: [String] = []
    func compare(_ name: String, _ ratio: Double, within margin: Double, _ text: String) {
      if abs(ratio - 1) > margin {
        mistakes.append("\(name): predicted / measured = \(ratio); \(text)")
      }
    }
    try await RecordedFleet.run(median: Self.median, spread: Self.spread) { fleet in
      let recorded = try await fleet.record(calls: Self.calls, perSecond: Self.rate, config: Self.now)
      let service = FittedService(try TrafficTrace(text: recorded.log))
      XCTAssertEqual(service.servers.count, 10)
      guard let number = service.servers.firstIndex(where: { $0.name == fleet.addresses[3] }) else {
        return XCTFail("no server \(fleet.addresses[3]): \(service.servers.map(\.name))")
      }
      let (broken, address) = (fleet.fleets[3], fleet.addresses[3])
      func expect(
        _ change: WhatIf.Change,
        _ config: String,
        trouble: @escaping @Sendable () async throws -> Void
      ) async throws {
        var question = WhatIf(
          service,
          now: try ServiceConfig(json: Self.now),
          new: try ServiceConfig(json: config)
        )
        question.changes = [change]
        question.changeTime = .seconds(1)
        question.duration = .seconds(Double(Self.calls) / Self.rate)
        let result = try await question.run()
        let measured = try await fleet.record(
          calls: Self.calls,
          perSecond: Self.rate,
          config: config,
          trouble: trouble
        )
        let predicted = try XCTUnwrap(result["new, changed"])
        let text =
          "\(change): measured \(measured.percentile(0.99)) ms, \(measured.attemptsPerCall)\n\(result)"
        let ratio = try XCTUnwrap(predicted.p99) / measured.percentile(0.99)
        compare("p99", ratio, within: 0.15, text)
        compare("attempts", predicted.attemptsPerCall / measured.attemptsPerCall, within: 0.03, text)
        compare("successes", predicted.successRate / measured.successRate, within: 0.02, text)
      }
      try await expect(.slow(server: number, by: 5), Self.hedging(after: "0.12s")) {
        try await broken.delay(address, median: Self.median * 5, spread: Self.spread)
      }
      try await broken.delay(address, median: Self.median, spread: Self.spread)
      try await expect(.freeze(server: number), Self.hedging(after: "0.06s")) { broken.process.freeze() }
      broken.process.resume()
      try await expect(.remove(server: number), Self.retries) { broken.process.kill() }
    }
    return mistakes
  }
}
