import Connect
import ConnectTesting
import XCTest

@testable import ConnectChannels

/// Addresses that may be reached over TCP and QUIC: which one calls take, and what is left of the other.
final class AlternativesOpenerTests: XCTestCase {
  private let field = #"h3=":443"; ma=86400"#

  // MARK: - HTTP/3 is known

  func testWithoutKnowledgeThereIsNoQUIC() {
    let fleet = TwoWayFleet()
    fleet.call()
    fleet.answer(fleet.tcp)
    XCTAssertEqual(fleet.tcp.attempts, [TwoWayFleet.address])
    XCTAssertEqual(fleet.quic.attempts, [])
    fleet.shutDown()
  }

  func testQUICComesFirstWhereItIsKnown() {
    let fleet = TwoWayFleet(knowsHTTP3: true)
    let call = fleet.call()
    fleet.answer(fleet.quic)
    XCTAssertTrue(call.hasEnded)
    fleet.advance(by: .seconds(1))
    XCTAssertEqual(fleet.tcp.attempts, [])
    XCTAssertEqual(fleet.quic.attempts, [TwoWayFleet.address])
    fleet.shutDown()
  }

  func testTCPBeginsAfterTheHeadStart() {
    let fleet = TwoWayFleet(knowsHTTP3: true)
    fleet.quic.delay = .milliseconds(400)
    fleet.tcp.delay = .milliseconds(200)
    let call = fleet.call()
    fleet.advance(by: .milliseconds(249))
    XCTAssertEqual(fleet.tcp.attempts, [])
    fleet.advance(by: .milliseconds(1))
    XCTAssertEqual(fleet.tcp.attempts, [TwoWayFleet.address])
    fleet.advance(by: .milliseconds(150))
    fleet.answer(fleet.quic)
    XCTAssertTrue(call.hasEnded)
    // The attempt over TCP was given up.
    fleet.advance(by: .seconds(1))
    XCTAssertEqual(fleet.tcp.connections.count, 0)
    fleet.shutDown()
  }

  func testTCPBeginsAtOnceIfQUICFails() {
    let fleet = TwoWayFleet(knowsHTTP3: true)
    fleet.quic.standard = .refuses
    let call = fleet.call()
    fleet.answer(fleet.tcp)
    XCTAssertTrue(call.hasEnded)
    XCTAssertEqual(fleet.executor.now, .zero)
    XCTAssertFalse(fleet.isHTTP3Usable)
    fleet.shutDown()
  }

  /// While HTTP/3 is broken, connections are opened as without it.
  func testNetworkThatDropsUDPIsRemembered() {
    let fleet = TwoWayFleet(knowsHTTP3: true)
    fleet.quic.standard = .timesOut
    let call = fleet.call()
    fleet.advance(by: .milliseconds(250))
    fleet.answer(fleet.tcp)
    XCTAssertTrue(call.hasEnded)
    XCTAssertTrue(fleet.isHTTP3Usable)
    fleet.advance(by: .seconds(10))
    XCTAssertFalse(fleet.isHTTP3Usable)
    for _ in 0..<3 {
      fleet.run { for connection in fleet.openTCP { connection.die() } }
      let start = fleet.executor.now
      let next = fleet.call()
      fleet.answer(fleet.tcp)
      XCTAssertTrue(next.hasEnded)
      XCTAssertEqual(fleet.executor.now, start)
      fleet.advance(by: .seconds(10))
    }
    XCTAssertEqual(fleet.quic.attempts.count, 1)
    fleet.advance(by: .seconds(300))
    fleet.run { for connection in fleet.openTCP { connection.die() } }
    fleet.quic.standard = .accepts(.http3)
    let last = fleet.call()
    fleet.answer(fleet.quic)
    XCTAssertTrue(last.hasEnded)
    fleet.shutDown()
  }

  /// Connections that are shorter than QUIC's try do not wait for it each.
  func testShortConnectionsWhereUDPIsDropped() {
    let fleet = TwoWayFleet(knowsHTTP3: true)
    fleet.quic.standard = .timesOut
    fleet.tcp.standard = .accepts(.http1, streams: 1)
    for index in 0..<5 {
      let start = fleet.executor.now
      let call = fleet.call()
      fleet.advance(by: .milliseconds(250))
      XCTAssertEqual(fleet.openTCP.count, 1)
      fleet.answer(fleet.tcp)
      XCTAssertTrue(call.hasEnded)
      // `connection: close`.
      fleet.run { for connection in fleet.openTCP { connection.goAway() } }
      XCTAssertEqual(fleet.quic.attempts.count, min(index + 1, 2))
      XCTAssertEqual(fleet.executor.now - start, .milliseconds(250))
    }
    XCTAssertFalse(fleet.isHTTP3Usable)
    fleet.shutDown()
  }

  func testAServerThatIsDownSaysNothingOfHTTP3() {
    let fleet = TwoWayFleet(knowsHTTP3: true)
    fleet.quic.standard = .refuses
    fleet.tcp.standard = .refuses
    let call = fleet.call()
    XCTAssertEqual(call.error?.message, "cannot connect (10.0.0.1:443: refused)")
    XCTAssertTrue(fleet.isHTTP3Usable)
    fleet.shutDown()
  }

  func testAServerThatIsDownIsKnownToBeSoon() {
    let fleet = TwoWayFleet(knowsHTTP3: true)
    fleet.quic.standard = .timesOut
    fleet.tcp.standard = .refuses
    let call = fleet.call()
    fleet.advance(by: .milliseconds(2_249))
    XCTAssertTrue(call.isPending)
    fleet.advance(by: .milliseconds(1))
    XCTAssertEqual(call.error?.message, "cannot connect (10.0.0.1:443: refused)")
    XCTAssertTrue(fleet.isHTTP3Usable)
    fleet.shutDown()
  }

  func testNothingIsKept() {
    weak var channel: OriginChannel?
    weak var alternatives: SharedAlternatives?
    do {
      let fleet = TwoWayFleet(knowsHTTP3: true)
      channel = fleet.channel
      alternatives = fleet.alternatives
      fleet.quic.delay = .seconds(1)
      // TCP wins, and QUIC takes its place.
      fleet.call()
      fleet.advance(by: .seconds(2))
      fleet.answer(fleet.tcp)
      fleet.call()
      fleet.answer(fleet.quic)
      // QUIC is silent, TCP wins, and QUIC is tried until the end.
      fleet.quic.standard = .timesOut
      fleet.run { fleet.openQUIC[0].die() }
      fleet.call()
      fleet.advance(by: .milliseconds(250))
      fleet.answer(fleet.tcp)
      fleet.shutDown()
      fleet.advance(by: .seconds(20))
    }
    XCTAssertNil(channel)
    XCTAssertNil(alternatives)
  }

  func testASlowHandshakeIsNoFailure() {
    let fleet = TwoWayFleet(knowsHTTP3: true)
    fleet.quic.delay = .seconds(3)
    let first = fleet.call()
    fleet.advance(by: .milliseconds(250))
    XCTAssertEqual(fleet.openTCP.count, 1)
    fleet.advance(by: .seconds(3))
    XCTAssertTrue(fleet.isHTTP3Usable)
    // QUIC is ready now, too: new calls go there, TCP finishes its own.
    let second = fleet.call()
    XCTAssertEqual(fleet.openQUIC.first?.streams.count, 1)
    XCTAssertEqual(fleet.openTCP.first?.isDraining, true)
    fleet.answer(fleet.tcp)
    fleet.answer(fleet.quic)
    XCTAssertTrue(first.hasEnded && second.hasEnded)
    XCTAssertEqual(fleet.openTCP.count, 0)
    fleet.shutDown()
  }

  func testAnotherPort() {
    let fleet = TwoWayFleet()
    fleet.learn(port: 8443)
    fleet.call()
    XCTAssertEqual(fleet.quic.attempts, ["10.0.0.1:8443"])
    fleet.shutDown()
    // The origin's port stands for those of servers that listen elsewhere.
    let other = TwoWayFleet(["10.0.0.1:9000"], knowsHTTP3: true)
    other.quic.standard = .refuses
    other.call()
    XCTAssertEqual(other.quic.attempts, ["10.0.0.1:9000"])
    XCTAssertFalse(other.isHTTP3Usable(at: "10.0.0.1:9000"))
    other.shutDown()
  }

  /// The known port may be that of the server's address, though it is not the origin's.
  func testThePortOfTheAddressIsKnown() {
    let server = "10.0.0.1:8443"
    let fleet = TwoWayFleet([server])
    fleet.learn(port: 8443)
    fleet.quic.standard = .refuses
    fleet.call()
    XCTAssertEqual(fleet.quic.attempts, [server])
    XCTAssertFalse(fleet.isHTTP3Usable(at: server))
    fleet.shutDown()
    // Silence counts there, too.
    let silent = TwoWayFleet([server])
    silent.learn(port: 8443)
    silent.call()
    silent.run { silent.openQUIC[0].fallSilent() }
    XCTAssertFalse(silent.isHTTP3Usable(at: server))
    // An answer forgets the failure, so that the time does not double.
    silent.advance(by: .seconds(300))
    silent.call()
    silent.answer(silent.quic)
    silent.run { silent.openQUIC[0].fallSilent() }
    silent.advance(by: .seconds(300))
    XCTAssertTrue(silent.isHTTP3Usable(at: server))
    silent.shutDown()
  }

  func testAttemptsThatAreGivenUpLeaveNothing() {
    let fleet = TwoWayFleet(knowsHTTP3: true)
    fleet.quic.delay = .seconds(1)
    fleet.tcp.delay = .seconds(1)
    let call = fleet.call()
    fleet.advance(by: .milliseconds(300))
    XCTAssertEqual(fleet.tcp.attempts.count, 1)
    fleet.run { call.cancel() }
    fleet.shutDown()
    XCTAssertEqual(fleet.tcp.connections.count + fleet.quic.connections.count, 0)
  }

  // MARK: - Early data

  func testEarlyDataThatIsProven() {
    let fleet = TwoWayFleet(knowsHTTP3: true)
    fleet.quic.hasEarlyData = true
    let call = fleet.call()
    XCTAssertEqual(fleet.openQUIC.first?.streams.count, 1)
    fleet.run { fleet.openQUIC[0].prove() }
    fleet.advance(by: .seconds(1))
    XCTAssertEqual(fleet.tcp.attempts, [])
    fleet.answer(fleet.quic)
    XCTAssertTrue(call.hasEnded)
    fleet.shutDown()
    // TCP has begun meanwhile, and is given up.
    let slow = TwoWayFleet(knowsHTTP3: true)
    slow.quic.hasEarlyData = true
    slow.tcp.delay = .milliseconds(200)
    slow.call()
    slow.advance(by: .milliseconds(300))
    XCTAssertEqual(slow.tcp.attempts, [TwoWayFleet.address])
    slow.run { slow.openQUIC[0].prove() }
    slow.advance(by: .seconds(1))
    XCTAssertEqual(slow.openTCP.count, 0)
    slow.answer(slow.quic)
    slow.shutDown()
  }

  /// In a network that drops UDP, calls wait for TCP only, and what is known of HTTP/3 is the same as without early data.
  func testEarlyDataWhereUDPIsDropped() {
    let fleet = TwoWayFleet(knowsHTTP3: true)
    fleet.quic.hasEarlyData = true
    let early = fleet.call()
    let silent = fleet.openQUIC[0]
    fleet.quic.standard = .timesOut
    fleet.advance(by: .milliseconds(250))
    XCTAssertNotNil(early.error, "it is made again")
    XCTAssertTrue(silent.isClosed)
    let next = fleet.call()
    XCTAssertEqual(fleet.openTCP.first?.streams.count, 1)
    fleet.answer(fleet.tcp)
    XCTAssertTrue(next.hasEnded)
    XCTAssertEqual(fleet.quic.attempts.count, 2, "QUIC is tried beside TCP")
    XCTAssertTrue(fleet.isHTTP3Usable)
    fleet.advance(by: .seconds(10))
    XCTAssertFalse(fleet.isHTTP3Usable)
    fleet.shutDown()
  }

  func testEarlyDataThatIsSlow() {
    let fleet = TwoWayFleet(knowsHTTP3: true)
    fleet.quic.hasEarlyData = true
    fleet.call()
    fleet.quic.delay = .seconds(1)
    fleet.advance(by: .milliseconds(250))
    XCTAssertEqual(fleet.openTCP.count, 1)
    fleet.advance(by: .seconds(1))
    fleet.call()
    XCTAssertEqual(fleet.openQUIC.first?.streams.count, 1)
    fleet.answer(fleet.quic)
    XCTAssertEqual(fleet.openTCP.count, 0)
    fleet.shutDown()
  }

  func testEarlyConnectionThatFails() {
    let fleet = TwoWayFleet(knowsHTTP3: true)
    fleet.quic.hasEarlyData = true
    fleet.call()
    fleet.quic.standard = .refuses
    fleet.run { fleet.openQUIC[0].die() }
    fleet.advance(by: .seconds(1))
    XCTAssertEqual(fleet.openTCP.count, 0, "nobody has called since")
    let next = fleet.call()
    fleet.answer(fleet.tcp)
    XCTAssertTrue(next.hasEnded)
    fleet.shutDown()
  }

  /// Beside an open connection over TCP, QUIC has to be proven first.
  func testNoEarlyDataBesideTCP() {
    let fleet = TwoWayFleet()
    fleet.quic.hasEarlyData = true
    fleet.call()
    fleet.answer(fleet.tcp, altSvc: self.field)
    XCTAssertEqual(fleet.openQUIC.count, 1)
    fleet.run { fleet.openQUIC[0].prove() }
    fleet.call()
    XCTAssertEqual(fleet.openQUIC[0].streams.count, 1, "it had no early data")
    fleet.answer(fleet.quic)
    fleet.shutDown()
  }

  // MARK: - HTTP/3 becomes known

  func testAltSvcOpensQUICOnceBesideTCP() {
    let fleet = TwoWayFleet()
    fleet.quic.delay = .milliseconds(100)
    let calls = (0..<5).map { _ in fleet.call() }
    fleet.run {
      for stream in fleet.tcp.connections[0].streams { stream.respond(["alt-svc": [self.field]]) }
    }
    XCTAssertEqual(fleet.quic.attempts, [TwoWayFleet.address])
    // Until it is ready, calls go over TCP.
    fleet.call()
    XCTAssertEqual(fleet.tcp.connections[0].streams.count, 6)
    fleet.advance(by: .milliseconds(100))
    let next = fleet.call()
    XCTAssertEqual(fleet.openQUIC[0].streams.count, 1)
    XCTAssertEqual(fleet.tcp.connections[0].isDraining, true)
    // Fields of the connection that ends change nothing.
    fleet.advance(by: .seconds(100))
    fleet.answer(fleet.tcp, altSvc: self.field)
    fleet.answer(fleet.quic, altSvc: self.field)
    XCTAssertTrue(calls.allSatisfy(\.hasEnded) && next.hasEnded)
    XCTAssertEqual(fleet.quic.attempts.count, 1)
    XCTAssertEqual(fleet.openTCP.count, 0)
    XCTAssertEqual(fleet.openQUIC.count, 1)
    fleet.shutDown()
  }

  func testAllConnectionsOfHTTP1AreReplaced() {
    let fleet = TwoWayFleet()
    fleet.tcp.standard = .accepts(.http1, streams: 1)
    fleet.quic.delay = .milliseconds(100)
    let calls = (0..<4).map { _ in fleet.call() }
    XCTAssertEqual(fleet.openTCP.count, 4)
    fleet.run {
      for connection in fleet.openTCP { connection.streams[0].respond(["alt-svc": [self.field]]) }
    }
    XCTAssertEqual(fleet.quic.attempts.count, 1)
    fleet.advance(by: .milliseconds(100))
    XCTAssertTrue(fleet.openTCP.allSatisfy(\.isDraining))
    let more = (0..<4).map { _ in fleet.call() }
    XCTAssertEqual(fleet.openQUIC.first?.streams.count, 4)
    XCTAssertEqual(fleet.tcp.attempts.count, 4)
    fleet.answer(fleet.tcp)
    fleet.answer(fleet.quic)
    XCTAssertTrue((calls + more).allSatisfy(\.hasEnded))
    XCTAssertEqual(fleet.openTCP.count, 0)
    fleet.shutDown()
  }

  /// Where several connections each have a try of QUIC, the first one that is ready stays.
  func testSeveralTriesBesideTCP() {
    let fleet = TwoWayFleet()
    fleet.tcp.standard = .accepts(.http1, streams: 1)
    fleet.quic.standard = .refuses
    fleet.call()
    fleet.learn()
    XCTAssertFalse(fleet.isHTTP3Usable)
    fleet.advance(by: .seconds(300))
    fleet.quic.standard = .accepts(.http3)
    fleet.quic.delay = .seconds(1)
    for _ in 0..<3 { fleet.call() }
    XCTAssertEqual(fleet.quic.attempts.count, 4)
    fleet.advance(by: .milliseconds(250))
    XCTAssertEqual(fleet.openTCP.count, 4)
    fleet.advance(by: .seconds(1))
    XCTAssertEqual(fleet.quic.connections.count, 1)
    XCTAssertEqual(fleet.openQUIC.count, 1)
    fleet.call()
    XCTAssertEqual(fleet.openQUIC.first?.streams.count, 1)
    fleet.answer(fleet.tcp)
    fleet.answer(fleet.quic)
    XCTAssertEqual(fleet.openTCP.count, 0)
    XCTAssertTrue(fleet.isHTTP3Usable)
    fleet.shutDown()
  }

  /// Attempts to connect over TCP that go on meanwhile are given up, and their calls take QUIC.
  func testAttemptsOverTCPAreReplaced() {
    let fleet = TwoWayFleet()
    fleet.tcp.standard = .accepts(.http1, streams: 1)
    fleet.quic.delay = .milliseconds(100)
    fleet.call()
    fleet.tcp.standard = .hangs
    let waiting = (0..<3).map { _ in fleet.call() }
    fleet.run { fleet.openTCP[0].streams[0].respond(["alt-svc": [self.field]]) }
    fleet.advance(by: .milliseconds(100))
    XCTAssertEqual(fleet.openQUIC.first?.streams.count, 3)
    fleet.answer(fleet.quic)
    XCTAssertTrue(waiting.allSatisfy(\.hasEnded))
    fleet.answer(fleet.tcp)
    fleet.shutDown()
  }

  func testQUICThatFailsBesideTCPCostsCallsNothing() {
    let fleet = TwoWayFleet()
    fleet.quic.standard = .refuses
    for _ in 0..<10 {
      let call = fleet.call()
      fleet.answer(fleet.tcp, altSvc: self.field)
      XCTAssertTrue(call.hasEnded)
      fleet.advance(by: .seconds(61))
    }
    // Once, and once more after 5 minutes.
    XCTAssertEqual(fleet.quic.attempts.count, 2)
    XCTAssertEqual(fleet.tcp.connections.count, fleet.tcp.attempts.count)
    fleet.shutDown()
  }

  func testTCPThatClosesTakesTheTryWithIt() {
    let fleet = TwoWayFleet()
    fleet.quic.delay = .seconds(1)
    fleet.call()
    fleet.answer(fleet.tcp, altSvc: self.field)
    XCTAssertEqual(fleet.quic.attempts.count, 1)
    fleet.run { fleet.openTCP[0].goAway() }
    fleet.advance(by: .seconds(2))
    XCTAssertEqual(fleet.quic.connections.count, 0)
    let next = fleet.call()
    fleet.advance(by: .milliseconds(250))
    fleet.answer(fleet.tcp)
    XCTAssertTrue(next.hasEnded)
    // Neither does a shutdown leave one behind.
    fleet.shutDown()
    fleet.advance(by: .seconds(2))
    XCTAssertEqual(fleet.quic.connections.count, 0)
  }

  func testNewsFromElsewhereReachOpenConnections() {
    let fleet = TwoWayFleet()
    fleet.call()
    fleet.answer(fleet.tcp)
    XCTAssertEqual(fleet.quic.attempts.count, 0)
    fleet.learn()
    XCTAssertEqual(fleet.openQUIC.count, 1)
    XCTAssertEqual(fleet.openTCP.count, 0)
    fleet.shutDown()
  }

  func testClear() {
    let fleet = TwoWayFleet(knowsHTTP3: true)
    fleet.call()
    fleet.answer(fleet.quic, altSvc: "clear")
    XCTAssertFalse(fleet.isHTTP3Usable)
    // The connection stays.
    fleet.call()
    fleet.answer(fleet.quic)
    fleet.run { fleet.openQUIC[0].goAway() }
    fleet.call()
    XCTAssertEqual(fleet.openTCP.count, 1)
    fleet.answer(fleet.tcp)
    fleet.shutDown()
  }

  // MARK: - HTTP/3 in use

  func testSilenceMarksHTTP3AsBroken() {
    let fleet = TwoWayFleet(knowsHTTP3: true)
    let call = fleet.call()
    fleet.run { fleet.openQUIC[0].fallSilent() }
    XCTAssertEqual(call.error?.code, .unavailable)
    XCTAssertFalse(fleet.isHTTP3Usable)
    let next = fleet.call()
    fleet.answer(fleet.tcp)
    XCTAssertTrue(next.hasEnded)
    XCTAssertEqual(fleet.quic.attempts.count, 1)
    fleet.shutDown()
  }

  /// A failure counts in the network where the try has begun.
  func testSilenceCountsInTheOldNetwork() {
    let fleet = TwoWayFleet(knowsHTTP3: true)
    fleet.call()
    fleet.network.number = 2
    fleet.run { fleet.openQUIC[0].fallSilent() }
    XCTAssertTrue(fleet.isHTTP3Usable)
    fleet.shutDown()
  }

  func testHandshakeCountsInTheOldNetwork() {
    let fleet = TwoWayFleet(knowsHTTP3: true)
    fleet.quic.standard = .timesOut
    fleet.call()
    fleet.advance(by: .seconds(1))
    fleet.network.number = 2
    fleet.answer(fleet.tcp)
    fleet.advance(by: .seconds(10))
    XCTAssertTrue(fleet.isHTTP3Usable)
    fleet.shutDown()
  }

  /// An outage of one server says nothing of HTTP/3 at the others.
  func testSilenceOfOneServer() {
    let fleet = TwoWayFleet(knowsHTTP3: true)
    fleet.call()
    fleet.run { fleet.openQUIC[0].fallSilent() }
    XCTAssertFalse(fleet.isHTTP3Usable)
    XCTAssertTrue(fleet.isHTTP3Usable(at: "10.0.0.2:443"))
    fleet.shutDown()
  }

  /// A handshake proves little: the time doubles until a call has been answered.
  func testSilenceAfterEachHandshake() {
    let fleet = TwoWayFleet(knowsHTTP3: true)
    for length in [300, 600, 1_200] {
      fleet.call()
      fleet.run { fleet.openQUIC[0].fallSilent() }
      fleet.advance(by: .seconds(length - 1))
      XCTAssertFalse(fleet.isHTTP3Usable, "\(length)")
      fleet.advance(by: .seconds(1))
      XCTAssertTrue(fleet.isHTTP3Usable, "\(length)")
    }
    fleet.call()
    fleet.answer(fleet.quic)
    fleet.run { fleet.openQUIC[0].fallSilent() }
    fleet.advance(by: .seconds(300))
    XCTAssertTrue(fleet.isHTTP3Usable)
    fleet.shutDown()
  }

  func testALostConnectionIsOpenedAgainOverQUIC() {
    let fleet = TwoWayFleet(knowsHTTP3: true)
    fleet.call()
    fleet.run { fleet.openQUIC[0].die() }
    fleet.call()
    XCTAssertEqual(fleet.openQUIC.count, 1)
    XCTAssertEqual(fleet.tcp.attempts.count, 0)
    fleet.answer(fleet.quic)
    fleet.shutDown()
  }

  /// A second connection is opened where the first has no room, and no more than allowed.
  func testLimitOfConnections() {
    let fleet = TwoWayFleet(knowsHTTP3: true, limits: ConnectionLimits(http2Connections: 2))
    fleet.quic.standard = .accepts(.http3, streams: 2)
    let calls = (0..<6).map { _ in fleet.call() }
    XCTAssertEqual(fleet.openQUIC.count, 2)
    fleet.advance(by: .seconds(1))
    XCTAssertEqual(fleet.openTCP.count, 0)
    for _ in 0..<3 { fleet.answer(fleet.quic) }
    XCTAssertTrue(calls.allSatisfy(\.hasEnded))
    fleet.shutDown()
  }

  /// One server without HTTP/3 does not take it from the others.
  func testOneServerWithoutQUIC() {
    let addresses = (1...3).map { "10.0.0.\($0):443" }
    let fleet = TwoWayFleet(addresses, knowsHTTP3: true) { $0.balancing = .roundRobin }
    fleet.quic.behaviours["10.0.0.2:443"] = .refuses
    let calls = (0..<6).map { _ in fleet.call() }
    XCTAssertEqual(fleet.openTCP.map(\.address), ["10.0.0.2:443"])
    XCTAssertEqual(fleet.openQUIC.count, 2)
    fleet.answer(fleet.quic)
    fleet.answer(fleet.tcp)
    XCTAssertTrue(calls.allSatisfy(\.hasEnded))
    fleet.run { for connection in fleet.openQUIC + fleet.openTCP { connection.die() } }
    fleet.advance(by: .seconds(2))
    XCTAssertEqual(fleet.openTCP.map(\.address), ["10.0.0.2:443"])
    XCTAssertEqual(Set(fleet.openQUIC.map(\.address)), ["10.0.0.1:443", "10.0.0.3:443"])
    XCTAssertEqual(fleet.quic.attempts.filter { $0 == "10.0.0.2:443" }.count, 1)
    fleet.shutDown()
  }

  func testRoundRobin() {
    let addresses = (1...5).map { "10.0.0.\($0):443" }
    let fleet = TwoWayFleet(addresses, knowsHTTP3: true) { $0.balancing = .roundRobin }
    let calls = (0..<10).map { _ in fleet.call() }
    fleet.advance(by: .seconds(1))
    XCTAssertEqual(Set(fleet.quic.attempts), Set(addresses))
    XCTAssertEqual(fleet.tcp.attempts, [])
    XCTAssertTrue(fleet.openQUIC.allSatisfy { $0.streams.count == 2 })
    fleet.answer(fleet.quic)
    XCTAssertTrue(calls.allSatisfy(\.hasEnded))
    fleet.shutDown()
  }
}
