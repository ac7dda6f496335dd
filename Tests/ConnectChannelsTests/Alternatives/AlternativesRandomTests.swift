import Connect
import ConnectTesting
import XCTest

@testable import ConnectChannels

/// Random events against invariants: each call ends once, connections stay within their limits, and nothing is left at the end.
final class AlternativesRandomTests: XCTestCase {
  func testRandomEvents() {
    for _ in 0..<300 { self.run(seed: .random(in: 0 ... .max)) }
  }

  private func run(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    let isBalanced = Bool.random(using: &random)
    let addresses = (1...(isBalanced ? 3 : 1)).map { "10.0.0.\($0):443" }
    let limits = ConnectionLimits(http1Connections: 3, http2Connections: 2, idleTimeout: .seconds(20))
    let fleet = TwoWayFleet(addresses, knowsHTTP3: Bool.random(using: &random), limits: limits) {
      if isBalanced { $0.balancing = .roundRobin }
    }
    // Suspect connections come back beside those that were opened in their place.
    let suspects = Bool.random(using: &random)
    var calls: [FakeCall] = []
    for _ in 0..<150 {
      self.step(fleet, &calls, &random, suspects: suspects)
      for subchannel in fleet.channel.endpoints.subchannels.list where !suspects {
        let count = subchannel.pool.state.connections.http2.count
        XCTAssertLessThanOrEqual(count, limits.http2Connections, "seed \(seed)")
      }
    }
    // In the end all goes well.
    fleet.tcp.standard = .accepts()
    fleet.quic.standard = .accepts(.http3)
    for _ in 0..<30 {
      fleet.advance(by: .seconds(20))
      fleet.run { for connection in fleet.openTCP + fleet.openQUIC { connection.isAlive() } }
      fleet.answer(fleet.tcp)
      fleet.answer(fleet.quic)
    }
    XCTAssertEqual(calls.filter(\.isPending).count, 0, "seed \(seed)")
    fleet.shutDown()
  }

  private func step(
    _ fleet: TwoWayFleet,
    _ calls: inout [FakeCall],
    _ random: inout SeededRandom,
    suspects: Bool
  ) {
    let network = Bool.random(using: &random) ? fleet.tcp : fleet.quic
    let connections = network.connections.filter { !$0.isClosed }
    let connection = connections.randomElement(using: &random)
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<30:
      calls.append(fleet.call())
    case 30..<55:
      guard let stream = connection?.streams.randomElement(using: &random) else { return }
      let field = ["clear", #"h3=":443""#, #"h3=":443""#, #"h3=":8443", h3=":443"; ma=9"#, "x"]
        .randomElement(using: &random)
      fleet.run {
        stream.respond(field.map { ["alt-svc": [$0]] } ?? [:])
        stream.end()
      }
    case 55..<60:
      let call = calls.randomElement(using: &random)
      if let call, call.isPending {
        fleet.run { call.cancel() }
        calls.removeAll { $0 === call }
      }
    case 60..<64: fleet.run { connection?.die() }
    case 64..<68: fleet.run { connection?.goAway() }
    case 68..<70: if network === fleet.quic { fleet.run { connection?.fallSilent() } }
    case 70..<73: if suspects { fleet.run { connection?.suspect() } }
    case 73..<77: fleet.run { connection?.isAlive() }
    case 77..<80:
      network.standard = [.refuses, .timesOut].randomElement(using: &random) ?? .refuses
    case 83..<84:
      network.standard =
        network === fleet.quic
        ? .accepts(.http3, streams: .random(in: 1...4, using: &random))
        : .accepts(Bool.random(using: &random) ? .http1 : .http2, streams: 1)
    case 84..<87:
      network.delay = .milliseconds(Int.random(in: 0...600, using: &random))
    case 80: if network === fleet.quic { network.hasEarlyData.toggle() }
    case 81, 82: fleet.run { connection?.prove() }
    case 87..<88: fleet.learn(port: Bool.random(using: &random) ? 443 : 8443)
    case 88..<90: fleet.advance(by: .seconds(Int.random(in: 1...400, using: &random)))
    default: fleet.advance(by: .milliseconds(Int.random(in: 1...400, using: &random)))
    }
  }
}
