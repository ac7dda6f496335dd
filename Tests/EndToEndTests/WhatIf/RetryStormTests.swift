internal import ConnectSimulation
internal import Foundation
internal import XCTest

/// What three services in a row, which all retry, do to the last one, as predicted and as it happens. The services are grpcio's.
final class RetryStormTests: XCTestCase {
  // With a backoff of 1 ms, retries of grpcio 1.85 never come.
  private static func config(budget: String = "") -> String {
    """
    {"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.01s", "maxBackoff": "0.02s",
      "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]\(budget)}
    """
  }

  func testThreeAttemptsInARowAre27Requests() async throws {
    let predicted = await StormCheck(try Self.map()).run()
    XCTAssertTrue(predicted.isStorm)
    XCTAssertEqual(predicted.path, ["user", "a", "b", "c"])
    XCTAssertEqual(predicted.amplification, 27)
    XCTAssertEqual(try XCTUnwrap(predicted.simulated), 27, accuracy: 0.5)
    try await Chain.run(of: 3, config: Self.config()) { chain in
      let amplification = try await chain.amplification(calls: 40, failing: 1)
      XCTAssertEqual(amplification, 27)
    }
  }

  func testProposedBudgetsEndTheStorm() async throws {
    let predicted = await StormCheck(try Self.map()).run()
    XCTAssertLessThanOrEqual(try XCTUnwrap(predicted.simulatedWithProposal), 1.2)
    // The processes share one config here: the smallest of the budgets.
    let tokens = try XCTUnwrap(predicted.budgets.map(\.maxTokens).min())
    let ratio = try XCTUnwrap(predicted.budgets.map(\.tokenRatio).min())
    let budget = ", \"retryThrottling\": {\"maxTokens\": \(tokens), \"tokenRatio\": \(ratio)}"
    try await Chain.run(of: 3, config: Self.config(budget: budget)) { chain in
      let partial = try await chain.amplification(calls: 800, failing: 0.2)
      XCTAssertGreaterThan(partial, 1)
      XCTAssertLessThanOrEqual(partial, 1.2)
      let total = try await chain.amplification(calls: 800, failing: 1)
      XCTAssertLessThanOrEqual(total, 1.2)
    }
  }

  /// The services as a file tells them.
  private static func map() throws -> ServiceMap {
    func call(_ service: String) -> String {
      """
      "calls": [{"service": "\(service)", "method": "/connect.test.v1.TestService/Echo", "config": \(Self.config())}]
      """
    }
    return try ServiceMap(
      json: """
        {"services": [{"name": "user", \(call("a"))}, {"name": "a", \(call("b"))}, {"name": "b", \(call("c"))}, {"name": "c"}]}
        """
    )
  }
}
