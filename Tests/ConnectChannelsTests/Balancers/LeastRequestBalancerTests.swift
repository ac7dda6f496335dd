import ConnectChannels
import XCTest

final class LeastRequestBalancerTests: XCTestCase {
  func testChoicesAreBounded() {
    XCTAssertEqual(
      [-1, 0, 2, 5, 10, 11].map { LeastRequestBalancer(choices: $0).choices },
      [2, 2, 2, 5, 10, 10]
    )
  }

  /// Two draws, with the same one twice allowed: the busier of two is chosen by a quarter of the calls.
  func testTheBusierOfTwoIsChosenByAQuarter() {
    for seed in seeds {
      let loads = EndpointLoads()
      loads.callBegan(EndpointID(0))
      var balancer = LeastRequestBalancer()
      var random = SeededRandom(seed: seed)
      let counts = balancer.update(.ready(2), loads: loads).picker.counts(20_000, of: 2, &random)
      XCTAssertEqual(Double(counts[0]), 5000, accuracy: 300, "seed \(seed)")
    }
  }

  func testCallsAreEvenWithEqualLoads() {
    for seed in seeds {
      var balancer = LeastRequestBalancer(choices: 3)
      var random = SeededRandom(seed: seed)
      let counts = balancer.update(.ready(10)).picker.counts(100_000, of: 10, &random)
      for count in counts { XCTAssertEqual(Double(count), 10_000, accuracy: 600, "seed \(seed)") }
    }
  }

  /// Calls stay: the longest queue of two choices is far shorter than that of a random one.
  func testQueuesStayShort() {
    for seed in seeds {
      let loads = EndpointLoads()
      var balancer = LeastRequestBalancer()
      var random = SeededRandom(seed: seed)
      let picker = balancer.update(.ready(100), loads: loads).picker
      for _ in 0..<10_000 {
        if case .endpoint(let id, _, _) = picker.pick(seed: random.next()) { loads.callBegan(id) }
      }
      let longest = (0..<100).map { loads.calls(of: EndpointID($0)) }.max() ?? 0
      XCTAssertLessThanOrEqual(longest, 105, "seed \(seed)")
    }
  }

  func testACallThatIsPickedAgainMeetsTheSameEndpoint() {
    var balancer = LeastRequestBalancer()
    let picker = balancer.update(.ready(100)).picker
    XCTAssertEqual(picker.pick(seed: 42), picker.pick(seed: 42))
  }
}
