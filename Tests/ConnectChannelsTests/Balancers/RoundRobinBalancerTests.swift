import ConnectChannels
import XCTest

final class RoundRobinBalancerTests: XCTestCase {
  func testStates() {
    let table: [([BalancedEndpoint], ConnectivityState, PickResult?, connect: [Int])] = [
      ([], .transientFailure, .fail("there are no addresses to connect to"), []),
      (.list(.idle, .idle), .connecting, .wait, [0, 1]),
      (.list(.connecting, .transientFailure), .connecting, .wait, []),
      (.list(.transientFailure, .idle), .connecting, .wait, [1]),
      (.list(.transientFailure), .transientFailure, .fail("the only endpoint is not available"), []),
      (.list(.idle, .ready, .transientFailure), .ready, .endpoint(EndpointID(1)), [0]),
      ([.number(0, .ready, isEjected: true), .number(1, .ready)], .ready, .endpoint(EndpointID(1)), []),
      ([.number(0, .ready, isEjected: true), .number(1, .connecting)], .connecting, .wait, []),
      // An ejected endpoint goes on connecting.
      ([.number(0, .idle, isEjected: true), .number(1, .ready)], .ready, .endpoint(EndpointID(1)), [0]),
    ]
    for (endpoints, state, result, connect) in table {
      for var balancer in [
        RoundRobinBalancer(), LeastRequestBalancer(), WeightedRoundRobinBalancer(),
        WeightedRoundRobinBalancer(.init(source: .resolver)),
      ] as [any LoadBalancer] {
        let decision = balancer.update(endpoints)
        XCTAssertEqual(decision.state, state, "\(balancer)")
        XCTAssertEqual(decision.picker.pick(), result, "\(balancer)")
        XCTAssertEqual(decision.connect.map(\.slot), connect, "\(balancer)")
      }
    }
  }

  func testCallsAreEvenWithinTwoPercent() {
    for seed in seeds {
      var balancer = RoundRobinBalancer()
      var random = SeededRandom(seed: seed)
      let picker = balancer.update(.ready(10), seed: seed).picker
      let counts = picker.counts(10_003, of: 10, &random)
      for count in counts { XCTAssertEqual(Double(count), 1000.3, accuracy: 20, "seed \(seed)") }
    }
  }

  /// States of other endpoints change all the time in a large fleet.
  func testCallsAreEvenWhileOthersChange() {
    for seed in seeds {
      var balancer = RoundRobinBalancer()
      var random = SeededRandom(seed: seed)
      var counts = Array(repeating: 0, count: 10)
      for step in 0..<10_000 {
        let other: BalancedEndpoint = .number(10, step % 2 == 0 ? .connecting : .transientFailure)
        let picker = balancer.update(.ready(10) + [other], seed: random.next()).picker
        if case .endpoint(let id, _, _) = picker.pick() { counts[id.slot] += 1 }
      }
      for count in counts { XCTAssertEqual(count, 1000, "seed \(seed)") }
    }
  }

  func testTheStartIsRandom() {
    var firsts: [Int: Int] = [:]
    for seed in 0..<1000 {
      var balancer = RoundRobinBalancer()
      if case .endpoint(let id, _, _) = balancer.update(.ready(10), seed: UInt64(seed)).picker.pick() {
        firsts[id.slot, default: 0] += 1
      }
    }
    XCTAssertEqual(firsts.count, 10)
    for (_, count) in firsts { XCTAssertEqual(Double(count), 100, accuracy: 50) }
  }
}
