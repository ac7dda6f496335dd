import ConnectChannels

extension EndpointID {
  /// An endpoint of the first generation.
  init(_ slot: Int) {
    self.init(slot: slot, generation: 1)
  }
}

extension BalancedEndpoint {
  /// An endpoint whose slot and address contain its number.
  static func number(
    _ slot: Int,
    _ state: ConnectivityState,
    weight: UInt32 = 1,
    error: String? = nil,
    isEjected: Bool = false
  ) -> BalancedEndpoint {
    let address = EndpointAddress.ip("10.0.\(slot / 256).\(slot % 256)", port: 80)
    return BalancedEndpoint(
      id: EndpointID(slot),
      endpoint: Endpoint(addresses: [address], weight: weight),
      state: state,
      lastError: error,
      isEjected: isEjected
    )
  }
}

struct TestHeaders: PickHeaders {
  var values: [String: String] = [:]

  func value(of name: String) -> String? { self.values[name] }
}

extension Picker {
  func pick(seed: UInt64 = 0, hash: UInt64? = nil, headers: [String: String] = [:]) -> PickResult {
    self.pick(PickContext(path: "/a.B/C", headers: TestHeaders(values: headers), seed: seed, hash: hash))
  }

  /// How many of `count` calls go to each slot.
  func counts(_ count: Int, of endpoints: Int, _ random: inout SeededRandom) -> [Int] {
    var counts = Array(repeating: 0, count: endpoints)
    for _ in 0..<count {
      if case .endpoint(let id, _, _) = self.pick(seed: random.next()) { counts[id.slot] += 1 }
    }
    return counts
  }
}

extension LoadBalancer {
  mutating func update(
    _ endpoints: [BalancedEndpoint],
    at now: Duration = .zero,
    seed: UInt64 = 1,
    loads: EndpointLoads = EndpointLoads(),
    wantsConnection: Bool = false
  ) -> BalancerDecision {
    var context = BalancerContext(
      now: now,
      random: SeededRandom(seed: seed),
      loads: loads,
      wantsConnection: wantsConnection
    )
    return self.update(endpoints, in: &context)
  }
}

/// The seeds of the tests with random input. Failure messages contain the seed.
let seeds: [UInt64] = [1, 2, 3, 0xfeed, .random(in: 0 ... .max)]

extension [BalancedEndpoint] {
  /// Endpoints with these states, numbered from 0.
  static func list(_ states: ConnectivityState...) -> [BalancedEndpoint] {
    states.enumerated().map { .number($0, $1) }
  }

  static func ready(_ count: Int, weight: (Int) -> UInt32 = { _ in 1 }) -> [BalancedEndpoint] {
    (0..<count).map { .number($0, .ready, weight: weight($0)) }
  }
}
