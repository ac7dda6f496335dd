import XCTest

@testable import ConnectChannels

final class EndpointProbesTests: XCTestCase {
  /// An endpoint that is connected and fails its health check needs no turn.
  func testConnectedEndpointsHaveNoTurn() {
    var probes = EndpointProbes(period: .milliseconds(500))
    var list: [BalancedEndpoint] = .list(.transientFailure, .transientFailure, .transientFailure)
    list[1].isConnected = true
    XCTAssertEqual(probes.update(list, now: .zero), [])
    let turns = (1...4).flatMap { probes.update(list, now: .milliseconds(500 * $0)) }
    XCTAssertEqual(turns.map(\.slot), [0, 2, 0, 2])
    for index in list.indices { list[index].isConnected = true }
    XCTAssertEqual(probes.update(list, now: .seconds(10)), [])
    XCTAssertNil(probes.delay(now: .seconds(10)))
  }
}
