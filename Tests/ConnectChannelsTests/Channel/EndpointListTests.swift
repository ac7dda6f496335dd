import Connect
import ConnectTesting
import XCTest

@testable import ConnectChannels

/// What becomes of connections when a resolver brings another list of endpoints.
final class EndpointListTests: XCTestCase {
  private let a = "10.0.0.1:80"
  private let b = "10.0.0.2:80"
  private let c = "10.0.0.3:80"
  private let d = "10.0.0.4:80"

  private func fleet() -> FakeFleet { FakeFleet(seed: 1) { $0.balancing = .roundRobin } }

  private func open(_ fleet: FakeFleet) -> [String] {
    fleet.network.connections.filter { !$0.isClosed }.map(\.address)
  }

  /// Some stay at their place, some move, one goes, one comes.
  func testEndpointsKeepTheirConnections() {
    let fleet = self.fleet()
    fleet.resolve([self.a, self.b, self.c])
    fleet.channel.connect()
    fleet.executor.runUntilIdle()
    fleet.resolve([self.a, self.c, self.d])
    XCTAssertEqual(self.open(fleet), [self.a, self.c, self.d])
    fleet.resolve([self.d, self.c, self.a, self.b])
    XCTAssertEqual(self.open(fleet), [self.a, self.c, self.d, self.b])
    fleet.resolve([self.b])
    XCTAssertEqual(self.open(fleet), [self.b])
    XCTAssertEqual(fleet.network.attempts.count, 5)
  }

  /// TLS was verified for the name that the endpoint had.
  func testAnEndpointAtItsPlaceWithAnotherNameConnectsAgain() throws {
    let fleet = self.fleet()
    var endpoint = try XCTUnwrap(Endpoint(self.a))
    fleet.resolver.update([endpoint])
    fleet.channel.connect()
    fleet.executor.runUntilIdle()
    endpoint.serverName = "other.test"
    fleet.resolver.update([endpoint])
    fleet.executor.runUntilIdle()
    XCTAssertEqual(fleet.network.attempts, [self.a, self.a])
    XCTAssertEqual(self.open(fleet), [self.a])
  }

  /// The order of addresses, and addresses that are there twice, make no other server.
  func testKeysOfServers() throws {
    func key(_ text: String, _ change: (inout Endpoint) -> Void = { _ in }) throws -> Endpoint.ServerKey {
      var endpoint = try XCTUnwrap(Endpoint(text))
      change(&endpoint)
      return endpoint.serverKey
    }
    XCTAssertEqual(try key("\(self.a),\(self.b)"), try key("\(self.b),\(self.a)"))
    XCTAssertEqual(try key("\(self.a),\(self.a)"), try key(self.a))
    XCTAssertNotEqual(try key("\(self.a),\(self.b)"), try key(self.a))
    XCTAssertEqual(try key(self.a) { $0.key = "pod" }, try key(self.b) { $0.key = "pod" })
    XCTAssertEqual(try key(self.a) { $0.key = "" }, try key(self.a) { $0.zone = "x" })
    XCTAssertNotEqual(try key(self.a) { $0.cluster = "x" }, try key(self.a))
  }

  /// A copy that is changed leaves the other as it is.
  func testEndpointsAreValues() throws {
    let first = try XCTUnwrap(Endpoint(self.a))
    var second = first
    XCTAssertTrue(second.isIdentical(to: first))
    second.weight = 7
    second.addresses += try XCTUnwrap(Endpoint(self.b)).addresses
    XCTAssertEqual(first, Endpoint(self.a))
    XCTAssertEqual(second.description, "\(self.a),\(self.b)")
    XCTAssertNotEqual(first.hashValue, second.hashValue)
    second.weight = 1
    second.addresses.removeLast()
    XCTAssertEqual(first, second)
    XCTAssertEqual(first.hashValue, second.hashValue)
  }
}
