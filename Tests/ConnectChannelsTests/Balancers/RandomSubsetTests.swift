import XCTest

@testable import ConnectChannels

final class RandomSubsetTests: XCTestCase {
  private let fleet = [BalancedEndpoint].ready(100).map(\.endpoint)

  private func subset(_ endpoints: [Endpoint], size: Int, seed: UInt64) -> Set<Endpoint> {
    var balancer = RandomSubset(RoundRobinBalancer(), size: size, seed: seed)
    var random = SeededRandom(seed: 0)
    return Set(balancer.select(endpoints, random: &random))
  }

  func testSize() {
    XCTAssertEqual(self.subset(self.fleet, size: 20, seed: 1).count, 20)
    XCTAssertEqual(self.subset(self.fleet, size: 100, seed: 1).count, 100)
    XCTAssertEqual(self.subset(self.fleet, size: 1000, seed: 1).count, 100)
    XCTAssertEqual(self.subset(self.fleet, size: 0, seed: 1).count, 1)
    XCTAssertEqual(self.subset([], size: 20, seed: 1).count, 0)
  }

  func testTheOrderOfTheListStays() {
    let subset = RandomSubset(RoundRobinBalancer(), size: 20, seed: 1).subset(of: self.fleet)
    XCTAssertEqual(subset, self.fleet.filter(Set(subset).contains))
  }

  func testAtMostOneChangesWithOneServer() {
    for seed in seeds {
      var random = SeededRandom(seed: seed)
      let all = self.subset(self.fleet, size: 20, seed: seed)
      XCTAssertEqual(self.subset(self.fleet.shuffled(using: &random), size: 20, seed: seed), all)
      for gone in self.fleet.indices {
        var fewer = self.fleet
        fewer.remove(at: gone)
        let rest = self.subset(fewer, size: 20, seed: seed)
        XCTAssertLessThanOrEqual(all.subtracting(rest).count, 1, "seed \(seed)")
      }
    }
  }

  func testServersGetEqualNumbersOfClients() {
    var counts: [Endpoint: Int] = [:]
    for seed in 0..<2000 {
      for endpoint in self.subset(self.fleet, size: 10, seed: UInt64(seed) &* 0x9e37_79b9) {
        counts[endpoint, default: 0] += 1
      }
    }
    XCTAssertEqual(counts.count, 100)
    for (_, count) in counts { XCTAssertEqual(Double(count), 200, accuracy: 70) }
  }

  func testTheBaseSelectsAndDecides() {
    var random = SeededRandom(seed: 1)
    var balancer: any LoadBalancer = BalancingPolicy.randomSubset(of: .pickFirst, size: 3)
      .makeBalancer(random: &random)
    let selected = balancer.select(self.fleet, random: &random)
    XCTAssertEqual(selected.map(\.addresses.count), [3])
    XCTAssertEqual(balancer.update(.list(.ready)).state, .ready)
  }
}
