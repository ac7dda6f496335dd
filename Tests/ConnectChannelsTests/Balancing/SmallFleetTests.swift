import ConnectChannels
import XCTest

/// All policies over servers that come and go.
final class SmallFleetTests: XCTestCase {
  private let policies: [BalancingPolicy] = [
    .pickFirst, .roundRobin, .leastRequest(), .weightedRoundRobin(), .ringHash(),
    .zoneAware(of: .roundRobin), .zoneAware(of: .ringHash()),
  ]

  func testCallsGoToServersThatAreUp() {
    for seed in seeds {
      for policy in self.policies {
        var random = SeededRandom(seed: seed)
        var fleet = SmallFleet(policy, servers: 4, seed: seed)
        for _ in 0..<300 {
          switch random.index(below: 6) {
          case 0: fleet.setUp(random.index(below: 4), false)
          case 1: fleet.setUp(random.index(below: 4), true)
          case 2: if random.index(below: 5) == 0 { fleet.replace(random.index(below: 4)) }
          case 3: fleet.advance(by: .milliseconds(random.index(below: 3000)))
          default: _ = fleet.call(hash: random.next())
          }
          if let failure = fleet.failure { return XCTFail("\(failure); \(policy), seed \(seed)") }
        }
      }
    }
  }

  /// Whatever has happened, one server that is up for as long as the longest backoff is enough, and a call that waits
  /// meanwhile has somewhere to go.
  func testOneServerIsEnough() {
    for seed in seeds {
      for policy in self.policies {
        var random = SeededRandom(seed: seed)
        for up in 0..<4 {
          var fleet = SmallFleet(policy, servers: 4, seed: seed &+ UInt64(up))
          for _ in 0..<50 {
            fleet.setUp(random.index(below: 4), random.index(below: 2) == 0)
            fleet.advance(by: .seconds(random.index(below: 60)))
            _ = fleet.call(hash: random.next())
          }
          for index in 0..<4 { fleet.setUp(index, index == up) }
          let hash = random.next()
          _ = fleet.call(hash: hash)
          for _ in 0..<20 {
            fleet.advance(by: .seconds(15))
            _ = fleet.call(hash: hash)
          }
          XCTAssertEqual(fleet.state, .ready, "\(policy), seed \(seed)")
          guard case .endpoint(let id, _, _) = fleet.call(hash: hash) else {
            return XCTFail("\(fleet.call(hash: hash)); \(policy), seed \(seed)")
          }
          XCTAssertEqual(id.slot, up, "\(policy), seed \(seed)")
        }
      }
    }
  }

  func testAllDownFailsCallsAndRecovers() {
    for policy in self.policies {
      var fleet = SmallFleet(policy, servers: 4, seed: 1)
      for index in 0..<4 { fleet.setUp(index, false) }
      for _ in 0..<10 {
        _ = fleet.call(hash: 7)
        fleet.advance(by: .seconds(5))
      }
      XCTAssertEqual(fleet.state, .transientFailure, "\(policy)")
      guard case .fail(let message) = fleet.call(hash: 7) else { return XCTFail("\(policy)") }
      XCTAssertTrue(message.hasSuffix(":80: refused"), message)
      for index in 0..<4 { fleet.setUp(index, true) }
      fleet.advance(by: .seconds(150))
      XCTAssertEqual(fleet.state, .ready, "\(policy)")
    }
  }
}
