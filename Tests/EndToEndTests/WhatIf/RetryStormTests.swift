internal import XCTest

/// What three services in a row, which all retry, do to the last one. The services are grpcio's.
final class RetryStormTests: XCTestCase {
  // With a backoff of 1 ms, retries of grpcio 1.85 never come.
  private static func config(budget: String = "") -> String {
    """
    {"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.01s", "maxBackoff": "0.02s",
      "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]\(budget)}
    """
  }

  func testThreeAttemptsInARowAre27Requests() async throws {
    try await Chain.run(of: 3, config: Self.config()) { chain in
      let amplification = try await chain.amplification(calls: 40, failing: 1)
      XCTAssertEqual(amplification, 27)
    }
  }

  func testBudgetsEndTheStorm() async throws {
    let budget = #", "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.06}"#
    try await Chain.run(of: 3, config: Self.config(budget: budget)) { chain in
      let partial = try await chain.amplification(calls: 800, failing: 0.2)
      XCTAssertGreaterThan(partial, 1)
      XCTAssertLessThanOrEqual(partial, 1.2)
      let total = try await chain.amplification(calls: 800, failing: 1)
      XCTAssertLessThanOrEqual(total, 1.2)
    }
  }
}
