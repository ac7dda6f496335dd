internal import LoopbackServer
internal import XCTest

/// Predictions for a policy that was never tried, from a log that was recorded without it, against what then happens to ten servers
/// of grpcio.
final class TrialTests: XCTestCase {
  private static let calls = 6_000
  private static let rate = 400.0
  private static let before = #"{"methodConfig": [{"name": [{}], "timeout": "1s"}]}"#
  private static let hedging = """
    {"methodConfig": [{"name": [{}], "timeout": "1s", "hedgingPolicy": {"maxAttempts": 2, "hedgingDelay": "0.12s"}}]}
    """
  private static let retries = """
    {"methodConfig": [{"name": [{}], "timeout": "1s", "retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.01s",
      "maxBackoff": "0.1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]}
    """

  func testPredictions() async throws {
    try await RecordedFleet.run(median: .milliseconds(40), spread: 0.4) { fleet in
      let recorded = try await fleet.record(calls: Self.calls, perSecond: Self.rate, config: Self.before)
      func show(_ name: String, _ record: RecordedFleet.Record) {
        print(name, record.successRate, record.percentile(0.5), record.percentile(0.99), record.attemptsPerCall)
      }
      show("before", recorded)
      let slow = try await fleet.record(calls: Self.calls, perSecond: Self.rate, config: Self.hedging) {
        try await fleet.fleets[3].delay(fleet.addresses[3], median: .milliseconds(200), spread: 0.4)
      }
      show("slow", slow)
      try await fleet.fleets[3].delay(fleet.addresses[3], median: .milliseconds(40), spread: 0.4)
      let frozen = try await fleet.record(calls: Self.calls, perSecond: Self.rate, config: Self.hedging) {
        fleet.fleets[3].process.freeze()
      }
      show("frozen", frozen)
      fleet.fleets[3].process.resume()
      let gone = try await fleet.record(calls: Self.calls, perSecond: Self.rate, config: Self.retries) {
        fleet.fleets[3].process.kill()
      }
      show("gone", gone)
    }
  }
}
