import ConnectChannels
import XCTest

final class StateCountsTests: XCTestCase {
  func testAggregate() {
    let table: [([ConnectivityState], ConnectivityState, eager: ConnectivityState)] = [
      ([], .transientFailure, .transientFailure),
      ([.idle], .idle, .connecting),
      ([.connecting], .connecting, .connecting),
      ([.ready], .ready, .ready),
      ([.transientFailure], .transientFailure, .transientFailure),
      ([.transientFailure, .idle], .idle, .connecting),
      ([.transientFailure, .idle, .connecting], .connecting, .connecting),
      ([.transientFailure, .idle, .connecting, .ready], .ready, .ready),
      ([.transientFailure, .transientFailure], .transientFailure, .transientFailure),
      ([.shutdown, .transientFailure], .transientFailure, .transientFailure),
    ]
    for (states, aggregate, eager) in table {
      XCTAssertEqual(StateCounts(states).aggregate, aggregate, "\(states)")
      XCTAssertEqual(StateCounts(states.reversed()).aggregateOfEager, eager, "\(states)")
    }
  }

  func testTheStateOfASummary() {
    XCTAssertEqual(EndpointSummary([]).state, .transientFailure)
    XCTAssertEqual(EndpointSummary([.number(1, .transientFailure), .number(2, .idle)]).state, .idle)
    XCTAssertEqual(
      EndpointSummary([.number(1, .connecting), .number(2, .ready, isEjected: true)]).state,
      .connecting
    )
  }

  func testNames() {
    let names = ConnectivityState.allCases.map(\.description)
    XCTAssertEqual(names, ["IDLE", "CONNECTING", "READY", "TRANSIENT_FAILURE", "SHUTDOWN"])
  }

  func testFailureMessage() {
    XCTAssertEqual(EndpointSummary([]).failureMessage, "there are no addresses to connect to")
    let one: BalancedEndpoint = .number(1, .transientFailure, error: "connection refused")
    XCTAssertEqual(
      EndpointSummary([one]).failureMessage,
      "the only endpoint is not available; last error: 10.0.0.1:80: connection refused"
    )
    let two: BalancedEndpoint = .number(2, .ready, isEjected: true)
    XCTAssertEqual(
      EndpointSummary([one, two]).failureMessage,
      "none of 2 endpoints is available; 1 ejected as unhealthy; last error: 10.0.0.1:80: connection refused"
    )
  }
}
