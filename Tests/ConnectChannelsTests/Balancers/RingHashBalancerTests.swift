import XCTest

@testable import ConnectChannels

final class RingHashBalancerTests: XCTestCase {
  func testAggregation() {
    let table: [([ConnectivityState], ConnectivityState, connects: Bool)] = [
      ([], .transientFailure, false),
      ([.idle, .idle], .idle, false),
      ([.idle, .ready, .transientFailure, .transientFailure], .ready, false),
      ([.transientFailure, .transientFailure, .connecting, .idle], .transientFailure, false),
      ([.transientFailure, .transientFailure, .idle], .transientFailure, true),
      ([.transientFailure, .connecting, .idle], .connecting, false),
      ([.transientFailure, .idle, .idle], .connecting, true),
      ([.connecting, .idle], .connecting, false),
      ([.transientFailure], .transientFailure, false),
      ([.transientFailure, .transientFailure], .transientFailure, false),
    ]
    for (states, state, connects) in table {
      var balancer = RingHashBalancer()
      let decision = balancer.update(states.enumerated().map { .number($0, $1) })
      XCTAssertEqual(decision.state, state, "\(states)")
      XCTAssertEqual(decision.connect.count, connects ? 1 : 0, "\(states)")
      for id in decision.connect { XCTAssertEqual(states[id.slot], .idle) }
    }
  }

  func testAWishConnectsOneAtRandom() {
    var connected: Set<Int> = []
    for seed in 0..<100 {
      var balancer = RingHashBalancer()
      let decision = balancer.update(.list(.idle, .idle, .idle), seed: UInt64(seed), wantsConnection: true)
      XCTAssertEqual(decision.state, .connecting)
      XCTAssertEqual(decision.connect.count, 1)
      connected.formUnion(decision.connect.map(\.slot))
    }
    XCTAssertEqual(connected, [0, 1, 2])
  }

  // MARK: - Picks

  /// The order in which a call meets the endpoints.
  private func order(_ hash: UInt64, _ count: Int) -> [Int] {
    var order: [Int] = []
    while order.count < count {
      var balancer = RingHashBalancer()
      let endpoints = (0..<count).map { slot in
        BalancedEndpoint.number(slot, order.contains(slot) ? .transientFailure : .ready)
      }
      guard case .endpoint(let id, _, _) = balancer.update(endpoints).picker.pick(hash: hash) else { break }
      order.append(id.slot)
    }
    return order
  }

  func testTheFirstThatHasNotFailedDecides() {
    for hash in [0, 1 << 40, 1 << 63, UInt64.max] {
      let order = self.order(hash, 4)
      XCTAssertEqual(Set(order), [0, 1, 2, 3])
      let table: [([ConnectivityState], PickResult)] = [
        ([.ready, .ready, .ready, .ready], .endpoint(EndpointID(order[0]))),
        ([.idle, .ready, .ready, .ready], .connect(EndpointID(order[0]))),
        ([.connecting, .ready, .ready, .ready], .wait),
        ([.transientFailure, .idle, .ready, .ready], .connect(EndpointID(order[1]))),
        ([.transientFailure, .connecting, .ready, .ready], .wait),
        ([.transientFailure, .transientFailure, .ready, .idle], .endpoint(EndpointID(order[2]))),
        (
          [.transientFailure, .transientFailure, .transientFailure, .transientFailure],
          .fail("none of 4 endpoints is available")
        ),
      ]
      for (states, result) in table {
        let endpoints = (0..<4).map { slot in
          BalancedEndpoint.number(slot, states[order.firstIndex(of: slot) ?? 0])
        }
        var balancer = RingHashBalancer()
        XCTAssertEqual(balancer.update(endpoints).picker.pick(hash: hash), result, "\(states)")
      }
    }
  }

  func testRandomCallsUseWhatIsReady() {
    var balancer = RingHashBalancer()
    let some = balancer.update(.list(.idle, .ready, .idle)).picker
    var connects: Set<EndpointID> = []
    for seed in 0..<100 {
      guard case .endpoint(EndpointID(1), let connect, _) = some.pick(seed: UInt64(seed)) else {
        return XCTFail()
      }
      if let connect { connects.insert(connect) }
    }
    XCTAssertEqual(connects, [EndpointID(0), EndpointID(2)])
    // One attempt at a time.
    let connecting = balancer.update(.list(.idle, .ready, .connecting)).picker
    for seed in 0..<100 {
      XCTAssertEqual(connecting.pick(seed: UInt64(seed)), .endpoint(EndpointID(1)))
    }
    let waiting = balancer.update(.list(.idle, .connecting, .idle)).picker
    for seed in 0..<100 { XCTAssertEqual(waiting.pick(seed: UInt64(seed)), .wait) }
    let idle = balancer.update(.list(.idle, .transientFailure)).picker
    XCTAssertEqual(idle.pick(seed: 1), .connect(EndpointID(0)))
  }

  func testKeysOfHeaders() {
    var balancer = RingHashBalancer(.init(key: .header("user")))
    let picker = balancer.update(.ready(50)).picker
    let hashed = { (key: String) in
      var other = RingHashBalancer()
      return other.update(.ready(50)).picker.pick(hash: XXH64.hash(key))
    }
    for key in ["alice", "bob", "a,b"] {
      for seed in 0..<20 {
        XCTAssertEqual(picker.pick(seed: UInt64(seed), headers: ["user": key]), hashed(key))
      }
    }
    // Without a value the endpoint is random, but the same when the call is picked again.
    XCTAssertEqual(Set((0..<1000).map { picker.pick(seed: $0, headers: ["user": ""]) }).count, 50)
    XCTAssertEqual(Set((0..<1000).map { picker.pick(seed: $0) }).count, 50)
    XCTAssertEqual(picker.pick(seed: 5), picker.pick(seed: 5))
  }

  func testRingSizeIsBounded() {
    let configuration = BalancingPolicy.RingHash(minimumRingSize: 1 << 40, maximumRingSize: 1 << 40)
    XCTAssertEqual(configuration.maximumRingSize, 8 << 20)
    XCTAssertEqual(configuration.minimumRingSize, 8 << 20)
    let defaults = BalancingPolicy.RingHash.defaults
    XCTAssertEqual([defaults.minimumRingSize, defaults.maximumRingSize], [1024, 4096])
    let small = BalancingPolicy.RingHash(minimumRingSize: 100, maximumRingSize: 10)
    XCTAssertEqual([small.minimumRingSize, small.maximumRingSize], [10, 10])
  }

  // MARK: - Distribution

  private func picker(_ endpoints: [BalancedEndpoint]) -> any Picker {
    var balancer = RingHashBalancer()
    return balancer.update(endpoints).picker
  }

  private func owners(_ picker: any Picker, _ hashes: [UInt64]) -> [Int] {
    hashes.map { hash in
      if case .endpoint(let id, _, _) = picker.pick(hash: hash) { id.slot } else { -1 }
    }
  }

  func testFewKeysMoveWhenAServerLeavesOrComes() {
    for count in 2...50 {
      let all = [BalancedEndpoint].ready(count)
      let picker = self.picker(all)
      for seed in seeds {
        var random = SeededRandom(seed: seed)
        let hashes = (0..<4_000).map { _ in random.next() }
        let before = self.owners(picker, hashes)
        XCTAssertEqual(Set(before), Set(0..<count))
        var fewer = all
        fewer.remove(at: random.index(below: count))
        let after = self.owners(self.picker(fewer), hashes)
        let moved = zip(before, after).reduce(0) { $0 + ($1.0 != $1.1 ? 1 : 0) }
        let bound = (1 / Double(count) + 0.1) * Double(hashes.count)
        XCTAssertLessThanOrEqual(Double(moved), bound, "seed \(seed) of \(count)")
      }
      // The list in another order changes nothing.
      var random = SeededRandom(seed: UInt64(count))
      let hashes = (0..<4_000).map { _ in random.next() }
      let shuffled = self.picker(all.shuffled(using: &random))
      XCTAssertEqual(self.owners(shuffled, hashes), self.owners(picker, hashes))
    }
  }

  func testSharesFollowWeights() {
    var random = SeededRandom(seed: 3)
    let hashes = (0..<50_000).map { _ in random.next() }
    let endpoints = [BalancedEndpoint].ready(4) { UInt32($0 + 1) }
    var counts = [0, 0, 0, 0]
    for owner in self.owners(self.picker(endpoints), hashes) { counts[owner] += 1 }
    for (slot, count) in counts.enumerated() {
      let expected = Double(slot + 1) / 10 * 50_000
      // A hundred entries for each tenth: their lengths differ.
      XCTAssertEqual(Double(count), expected, accuracy: expected * 0.3)
    }
  }
}

final class HashRingTests: XCTestCase {
  func testSizes() {
    let table: [(weights: [UInt32], minimum: Int, maximum: Int, counts: [Int])] = [
      ([1], 1024, 4096, [1024]),
      // gRPC and Envoy have 1,024 entries for any number of members.
      ([1, 1], 1024, 4096, [512, 512]),
      ([1, 1, 1], 1024, 4096, [456, 456, 456]),
      ([1, 1, 1, 1], 1024, 4096, [410, 410, 410, 410]),
      ([1, 1, 1], 1024, 1 << 20, [456, 456, 456]),
      // They have the same ring where it cannot grow.
      ([1, 1, 1], 1024, 1026, [342, 342, 342]),
      (Array(repeating: 1, count: 128), 1024, 1024, Array(repeating: 8, count: 128)),
      (Array(repeating: 1, count: 5000), 1024, 8192, Array(repeating: 1, count: 5000)),
      ([1, 2, 3], 12, 4096, [2, 4, 6]),
      // A whole number of entries for the smallest.
      ([1, 2, 3], 10, 4096, [2, 4, 6]),
      ([1, 1000], 1024, 4096, [2, 2000]),
      ([0, 1], 10, 4096, [5, 5]),
      ([1, 1, 1], 1024, 6, [2, 2, 2]),
      ([], 1024, 4096, []),
    ]
    for (weights, minimum, maximum, counts) in table {
      let members = weights.enumerated().map { (key: "10.0.0.\($0):80", weight: $1) }
      let ring = HashRing(members, minimum: minimum, maximum: maximum)
      var actual = Array(repeating: 0, count: weights.count)
      for owner in ring.owners { actual[Int(owner)] += 1 }
      XCTAssertEqual(actual, counts, "\(weights)")
      XCTAssertLessThanOrEqual(ring.count, maximum)
    }
  }

  /// Envoy and gRPC hash the address, an underscore and a number.
  func testPlaces() {
    let ring = HashRing([(key: "10.0.0.1:80", weight: 1)], minimum: 3, maximum: 3)
    XCTAssertEqual(ring.hashes, (0..<3).map { XXH64.hash("10.0.0.1:80_\($0)") }.sorted())
  }

  func testSearch() {
    for seed in seeds {
      var random = SeededRandom(seed: seed)
      for size in [1, 2, 3, 10, 1000] {
        let ring = HashRing([(key: "\(seed)", weight: 1)], minimum: size, maximum: size)
        XCTAssertEqual(ring.count, size)
        let near = ring.hashes.flatMap { [$0, $0 &+ 1, $0 &- 1] }
        for hash in near + [0, .max] + (0..<100).map({ _ in random.next() }) {
          let expected = ring.hashes.firstIndex { $0 >= hash } ?? 0
          XCTAssertEqual(ring.index(for: hash), expected, "seed \(seed)")
        }
      }
    }
  }
}
