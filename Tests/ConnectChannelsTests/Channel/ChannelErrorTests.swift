import Connect
import ConnectTesting
import XCTest

@testable import ConnectChannels

/// Which errors of a channel are final, and what becomes of connections to an endpoint that is called otherwise.
final class ChannelErrorTests: XCTestCase {
  private let a = "10.0.0.1:80"
  private let b = "10.0.0.2:80"

  private func error(_ isFinal: Bool) -> ConnectError {
    var error = ConnectError(code: .unavailable, message: "no")
    error.isFinal = isFinal
    return error
  }

  /// An error is final if it is so at each address: another attempt may get another address.
  func testAddresses() throws {
    for reason in ["refused", nil] {
      for (first, second) in [(true, true), (true, false), (false, true), (false, false)] {
        let failures = try [(self.a, first), (self.b, second)].map { address, isFinal in
          AddressFailure(
            address: try XCTUnwrap(EndpointAddress(address)),
            error: self.error(isFinal),
            reason: reason
          )
        }
        let error = try XCTUnwrap(failures.combined(peer: "http://fleet.test"))
        XCTAssertEqual(error.isFinal, first && second, "\(first), \(second), \(reason ?? "no reason")")
      }
    }
  }

  func testEndpoints() {
    for (policy, endpoints) in [(BalancingPolicy.pickFirst, 1), (.roundRobin, 2)] {
      let fleet = FakeFleet([self.a, self.b].prefix(endpoints).map { $0 }) { $0.balancing = policy }
      fleet.network.standard = .fails(self.error(true))
      XCTAssertEqual(fleet.call().error?.isFinal, true, "\(policy)")
      // A call that waits for a connection waits all the same.
      let patient = fleet.call(waitForReady: true)
      XCTAssertTrue(patient.isPending)
      fleet.network.standard = .accepts()
      fleet.advance(by: .seconds(5))
      XCTAssertEqual(fleet.channel.connectivity, .ready)
      fleet.run { fleet.network.connections.forEach { $0.streams.first?.end() } }
      XCTAssertTrue(patient.hasEnded)
    }
    let fleet = FakeFleet([self.a, self.b]) { $0.balancing = .roundRobin }
    fleet.network.standard = .fails(self.error(true))
    fleet.network.behaviours[self.b] = .refuses
    XCTAssertEqual(fleet.call().error?.isFinal, false)
  }

  func testAfterShutdown() {
    let fleet = FakeFleet([self.a])
    fleet.run { fleet.channel.shutDown(within: .zero) {} }
    XCTAssertEqual(fleet.call().error?.isFinal, true)
  }

  /// Calls in flight go on, and no others come to their connection.
  func testDuringShutdown() {
    for policy in [BalancingPolicy.pickFirst, .roundRobin] {
      for addresses in [[self.a], [self.a, self.b]] {
        let fleet = FakeFleet(addresses) { $0.balancing = policy }
        let call = fleet.call()
        fleet.run { fleet.channel.shutDown(within: nil) {} }
        XCTAssertEqual(fleet.call().error?.isFinal, true)
        XCTAssertTrue(call.isPending)
        fleet.run { fleet.network.connections.forEach { $0.streams.first?.end() } }
        XCTAssertTrue(call.hasEnded)
      }
    }
  }

  /// A connection was verified for the name that the endpoint had then.
  func testAnEndpointWithAnotherName() throws {
    for policy in [BalancingPolicy.pickFirst, .roundRobin] {
      let fleet = FakeFleet { $0.balancing = policy }
      fleet.network.answer = { $0.end() }
      var endpoint = try XCTUnwrap(Endpoint(self.a))
      for name in [nil, "a.test", "a.test", "b.test", nil] {
        endpoint.serverName = name
        fleet.resolver.update([endpoint])
        fleet.executor.runUntilIdle()
        for _ in 0..<3 { XCTAssertTrue(fleet.call().hasEnded, "\(policy), \(name ?? "none")") }
        XCTAssertEqual(fleet.network.open(at: self.a).count, 1, "\(policy), \(name ?? "none")")
      }
      XCTAssertEqual(fleet.network.attempts.count, 4, "\(policy)")
    }
  }
}
