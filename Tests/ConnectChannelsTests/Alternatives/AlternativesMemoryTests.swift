import Connect
import XCTest

@testable import ConnectChannels

/// What a client remembers of HTTP/3, and for how long.
final class AlternativesMemoryTests: XCTestCase {
  private let origin = Origin(scheme: .https, host: "api.test", port: 443)
  private var memory = AlternativesMemory()

  private func learn(_ value: String, at now: Duration = .zero) {
    guard let field = AltSvcField([value]) else { return XCTFail(value) }
    self.memory.learn(field, of: self.origin, now: now)
  }

  private let server = endpointAddress("10.0.0.1:443")

  private func choice(_ seconds: Int = 0, of server: String = "10.0.0.1:443") -> AlternativesMemory.Choice {
    self.memory.choice(for: self.origin, at: endpointAddress(server), now: .seconds(seconds))
  }

  private func fail(
    port: Int = 443,
    of server: String = "10.0.0.1:443",
    network: Int? = nil,
    onlyAtServer: Bool = false,
    at seconds: Int
  ) {
    let route = self.route(port: port, of: server, network: network)
    self.memory.failed(self.origin, route, onlyAtServer: onlyAtServer, now: .seconds(seconds))
  }

  private func route(
    port: Int = 443,
    of server: String = "10.0.0.1:443",
    network: Int? = nil
  ) -> QUICRoute {
    let server = endpointAddress(server)
    return QUICRoute(server: server, port: port, address: server, network: network)
  }

  private func succeed(of server: String = "10.0.0.1:443") {
    self.memory.succeeded(self.origin, port: 443, at: endpointAddress(server))
  }

  func testAgeOfAlternatives() {
    XCTAssertEqual(self.choice(), .none)
    self.learn(#"h3=":443"; ma=100"#, at: .seconds(10))
    XCTAssertEqual(self.choice(109), .http3(port: 443))
    XCTAssertEqual(self.choice(110), .none)
    self.learn(#"h3=":443""#, at: .seconds(200))
    XCTAssertEqual(self.choice(200 + 86_399), .http3(port: 443))
    XCTAssertEqual(self.choice(200 + 86_400), .none)
    XCTAssertEqual(
      self.memory.choice(for: Origin(scheme: .https, host: "b", port: 443), at: self.server, now: .zero),
      .none
    )
  }

  func testWhichAlternativesCount() {
    self.learn(#"h2=":1", h3="other.test:2", h3-29=":3", h3="API.test:4", h3=":5""#)
    XCTAssertEqual(self.choice(), .http3(port: 4))
    // Those of a response take the place of earlier ones.
    self.learn(#"h3=":6""#)
    XCTAssertEqual(self.choice(), .http3(port: 6))
    self.learn(#"h2=":1""#)
    XCTAssertEqual(self.choice(), .none)
    self.learn(#"h3=":6""#)
    self.memory.learn(.clear, of: self.origin, now: .zero)
    XCTAssertEqual(self.choice(), .none)
    XCTAssertEqual(self.memory.count, 0)
    self.learn(#"h3=":6"; ma=0"#)
    XCTAssertEqual(self.choice(), .none)
    XCTAssertEqual(self.memory.count, 0)
  }

  func testRecords() {
    self.memory.learn(port: 8443, of: self.origin, timeToLive: .seconds(60), now: .zero)
    XCTAssertEqual(self.choice(59), .http3(port: 8443))
    XCTAssertEqual(self.choice(60), .none)
    // They do not shorten what a response has said.
    self.learn(#"h3=":443"; ma=1000"#)
    self.memory.learn(port: 443, of: self.origin, timeToLive: .seconds(1), now: .zero)
    XCTAssertEqual(self.choice(999), .http3(port: 443))
    self.memory.learn(port: 444, of: self.origin, timeToLive: .seconds(3_000), now: .zero)
    XCTAssertEqual(self.choice(2_000), .http3(port: 444))
  }

  func testBreakageDoublesUpToADay() {
    self.learn(#"h3=":443"; ma=100000000"#)
    var now = 0
    for length in [300, 600, 1_200, 2_400, 4_800, 9_600, 19_200, 38_400, 76_800, 86_400, 86_400] {
      self.fail(at: now)
      XCTAssertEqual(self.choice(now + length - 1), .broken(port: 443, network: nil), "\(length)")
      XCTAssertEqual(self.choice(now + length), .http3(port: 443), "\(length)")
      now += length
    }
    self.succeed()
    self.fail(at: now)
    XCTAssertEqual(self.choice(now + 300), .http3(port: 443))
  }

  func testFailuresAtTheSameTimeCountOnce() {
    self.learn(#"h3=":443""#)
    for _ in 0..<5 { self.fail(at: 0) }
    self.fail(at: 299)
    XCTAssertEqual(self.choice(300), .http3(port: 443))
  }

  func testBreakageOutlivesTheAlternative() {
    self.learn(#"h3=":443"; ma=10"#)
    self.fail(at: 0)
    XCTAssertEqual(self.choice(20), .none)
    self.learn(#"h3=":443"; ma=10"#, at: .seconds(20))
    XCTAssertEqual(self.choice(20), .broken(port: 443, network: nil))
    self.memory.learn(.clear, of: self.origin, now: .seconds(21))
    self.learn(#"h3=":443"; ma=1000"#, at: .seconds(22))
    XCTAssertEqual(self.choice(22), .broken(port: 443, network: nil))
    XCTAssertEqual(self.choice(300), .http3(port: 443))
  }

  func testAnotherPortIsTried() {
    self.learn(#"h3=":443", h3=":8443""#)
    self.fail(network: 1, at: 0)
    XCTAssertEqual(self.choice(), .http3(port: 8443))
    self.fail(port: 8443, network: 2, at: 0)
    XCTAssertEqual(self.choice(), .broken(port: 443, network: 1))
  }

  /// Where HTTP/3 has never worked, one failure counts for all servers; else three in a row do.
  func testBreakageOfOneServer() {
    let (a, b, c) = ("10.0.0.1:443", "10.0.0.2:443", "10.0.0.3:443")
    self.learn(#"h3=":443""#)
    self.fail(of: a, at: 0)
    XCTAssertEqual(self.choice(of: b), .broken(port: 443, network: nil))
    // It works elsewhere, so that it was the server's own fault.
    self.succeed(of: b)
    XCTAssertEqual(self.choice(of: a), .broken(port: 443, network: nil))
    XCTAssertEqual(self.choice(of: b), .http3(port: 443))
    self.succeed(of: a)
    self.fail(of: a, at: 400)
    XCTAssertEqual(self.choice(400, of: a), .broken(port: 443, network: nil))
    XCTAssertEqual(self.choice(400, of: b), .http3(port: 443))
    // It comes back by itself.
    XCTAssertEqual(self.choice(700, of: a), .http3(port: 443))
    self.fail(of: a, at: 700)
    XCTAssertEqual(self.choice(1_299, of: a), .broken(port: 443, network: nil))
    XCTAssertEqual(self.choice(1_299, of: c), .http3(port: 443))
    self.succeed(of: c)
    // The network drops UDP now.
    self.fail(of: a, at: 2_000)
    self.fail(of: b, at: 2_000)
    XCTAssertEqual(self.choice(2_000, of: c), .http3(port: 443))
    self.fail(of: c, at: 2_000)
    XCTAssertEqual(self.choice(2_000, of: "10.0.0.4:443"), .broken(port: 443, network: nil))
    self.memory.networkChanged()
    for server in [a, b, c] { XCTAssertEqual(self.choice(2_000, of: server), .http3(port: 443)) }
  }

  /// One server without UDP among many does not take HTTP/3 from the others, however often it fails.
  func testOneServerThatFailsAgainAndAgain() {
    let (a, b) = ("10.0.0.1:443", "10.0.0.2:443")
    self.learn(#"h3=":443""#)
    self.succeed(of: b)
    for seconds in [0, 300, 900, 2_100, 4_500] {
      self.fail(of: a, at: seconds)
      XCTAssertEqual(self.choice(seconds, of: a), .broken(port: 443, network: nil))
      XCTAssertEqual(self.choice(seconds, of: b), .http3(port: 443), "\(seconds)")
    }
  }

  /// Where TCP may not work either, other servers are not judged, though HTTP/3 has never worked.
  func testFailureOfOneServerOnly() {
    let (a, b) = ("10.0.0.1:443", "10.0.0.2:443")
    self.learn(#"h3=":443""#)
    self.fail(of: a, onlyAtServer: true, at: 0)
    XCTAssertEqual(self.choice(of: a), .broken(port: 443, network: nil))
    XCTAssertEqual(self.choice(of: b), .http3(port: 443))
    // Nor does it count among those that break the port for all.
    self.succeed(of: b)
    for index in 3..<9 { self.fail(of: "10.0.0.\(index):443", onlyAtServer: true, at: 0) }
    XCTAssertEqual(self.choice(of: b), .http3(port: 443))
  }

  func testTheSecondUnjudgedTryIsAFailure() {
    self.learn(#"h3=":443""#)
    func leave(since start: Int, at now: Int) {
      self.memory.leftUnjudged(self.origin, self.route(), since: .seconds(start), now: .seconds(now))
    }
    leave(since: 0, at: 2)
    // At the same time.
    leave(since: 1, at: 3)
    XCTAssertEqual(self.choice(3), .http3(port: 443))
    self.succeed()
    leave(since: 4, at: 5)
    XCTAssertEqual(self.choice(5), .http3(port: 443))
    leave(since: 5, at: 6)
    XCTAssertEqual(self.choice(6), .broken(port: 443, network: nil))
    XCTAssertEqual(self.choice(306), .http3(port: 443))
    leave(since: 306, at: 307)
    XCTAssertEqual(self.choice(307), .http3(port: 443))
    self.memory.networkChanged()
    leave(since: 308, at: 309)
    XCTAssertEqual(self.choice(309), .http3(port: 443))
  }

  func testBoundOfServers() {
    self.learn(#"h3=":443""#)
    for index in 0..<1_000 {
      self.succeed(of: "10.1.0.1:443")
      self.fail(of: "10.0.\(index / 250).\(index % 250):443", at: index)
    }
    XCTAssertEqual(self.choice(999, of: "10.0.3.249:443"), .broken(port: 443, network: nil))
    XCTAssertEqual(self.choice(999, of: "10.0.0.0:443"), .http3(port: 443))
  }

  func testAnotherNetwork() {
    self.learn(#"h3=":443""#)
    self.fail(network: 1, at: 0)
    XCTAssertEqual(self.choice(), .broken(port: 443, network: 1))
    self.memory.networkChanged()
    XCTAssertEqual(self.choice(), .http3(port: 443))
  }

  func testItAsksForTheNetworkOnlyWhereHTTP3IsBroken() {
    let network = Counter()
    let shared = SharedAlternatives(network: { network.next() / 3 })
    shared.learn(port: 443, of: self.origin, timeToLive: .seconds(1_000), now: .zero)
    XCTAssertEqual(shared.port(for: self.origin, at: self.server, now: .zero), 443)
    XCTAssertEqual(network.value, 0)
    shared.failed(self.origin, self.route(network: shared.network()), now: .zero)
    XCTAssertNil(shared.port(for: self.origin, at: self.server, now: .zero))
    XCTAssertNil(shared.port(for: self.origin, at: self.server, now: .seconds(4)))
    XCTAssertEqual(network.value, 2)
    XCTAssertNil(shared.port(for: self.origin, at: self.server, now: .seconds(5)))
    // Now it says something else.
    XCTAssertEqual(shared.port(for: self.origin, at: self.server, now: .seconds(10)), 443)
    XCTAssertEqual(network.value, 4)
  }

  func testBounds() {
    self.memory = AlternativesMemory(maximumOrigins: 10)
    let field = AltSvcField([#"h3=":443"; ma=100"#])!
    for index in 0..<100 {
      let origin = Origin(scheme: .https, host: "\(index)", port: 443)
      self.memory.learn(field, of: origin, now: .seconds(index))
      // Used again and again, so that it stays.
      let first = Origin(scheme: .https, host: "0", port: 443)
      XCTAssertEqual(
        self.memory.choice(for: first, at: self.server, now: .seconds(index)),
        .http3(port: 443),
        "\(index)"
      )
    }
    XCTAssertEqual(self.memory.count, 10)
    // What has expired goes first.
    self.memory.learn(field, of: self.origin, now: .seconds(1_000))
    XCTAssertEqual(self.memory.count, 1)
    for port in 1...100 { self.fail(port: port, at: 1_000 + port) }
    self.learn((1...40).map { "h3=\":\($0)\"" }.joined(separator: ","), at: .seconds(2_000))
    XCTAssertEqual(self.choice(2_000), .http3(port: 1))
  }
}

/// - Returns: 0, 1, 2 …
private final class Counter: @unchecked Sendable {
  private(set) var value = 0

  func next() -> Int {
    defer { self.value += 1 }
    return self.value
  }
}
