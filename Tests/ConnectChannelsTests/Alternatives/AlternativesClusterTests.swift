import Connect
import ConnectTesting
import XCTest

@testable import ConnectChannels

/// What the servers of a cluster say of HTTP/3 holds for the cluster alone.
final class AlternativesClusterTests: XCTestCase {
  private let origin = Origin(scheme: .https, host: "api.test", port: 443)
  private let server = endpointAddress("10.0.0.1:443")

  func testClustersDoNotTellEachOther() throws {
    var memory = AlternativesMemory()
    let field = try XCTUnwrap(AltSvcField([#"h3=":443""#]))
    memory.learn(field, of: self.origin, in: "blue", now: .zero)
    func choices() -> [AlternativesMemory.Choice] {
      [nil, "blue", "green"].map { memory.choice(for: self.origin, in: $0, at: self.server, now: .zero) }
    }
    XCTAssertEqual(choices(), [.none, .http3(port: 443), .none])
    memory.learn(field, of: self.origin, in: "green", now: .zero)
    memory.learn(port: 8443, of: self.origin, timeToLive: .seconds(60), now: .zero)
    XCTAssertEqual(choices(), [.http3(port: 8443), .http3(port: 443), .http3(port: 443)])
    let route = QUICRoute(
      server: self.server,
      port: 443,
      address: self.server,
      network: nil,
      cluster: "blue"
    )
    memory.failed(self.origin, route, now: .zero)
    XCTAssertEqual(choices(), [.http3(port: 8443), .broken(port: 443, network: nil), .http3(port: 443)])
    memory.learn(.clear, of: self.origin, in: "green", now: .zero)
    XCTAssertEqual(choices(), [.http3(port: 8443), .broken(port: 443, network: nil), .none])
  }

  /// The record of the origin's name says nothing of a cluster. A server of the cluster does.
  func testACluster() {
    let fleet = TwoWayFleet(knowsHTTP3: true, cluster: "blue")
    fleet.call()
    XCTAssertEqual(fleet.quic.attempts, [])
    XCTAssertEqual(fleet.openTCP.count, 1)
    fleet.answer(fleet.tcp, altSvc: #"h3=":443""#)
    XCTAssertEqual(fleet.quic.attempts, [TwoWayFleet.address])
    XCTAssertEqual(fleet.openQUIC.count, 1)
    let server = endpointAddress(TwoWayFleet.address)
    XCTAssertNil(fleet.alternatives.port(for: fleet.origin, in: "green", at: server, now: fleet.executor.now))
    // It does not work there. That holds for the cluster alone, too.
    fleet.run { fleet.quic.connections[0].die() }
    fleet.quic.standard = .refuses
    fleet.run { for connection in fleet.openTCP { connection.die() } }
    fleet.call()
    let port = fleet.alternatives.port(for: fleet.origin, in: "blue", at: server, now: fleet.executor.now)
    XCTAssertNil(port)
    XCTAssertTrue(fleet.isHTTP3Usable)
    fleet.shutDown()
  }
}
