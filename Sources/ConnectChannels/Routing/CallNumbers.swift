internal import Synchronization

/// Gives each call its own random numbers. They depend on the seed and on the order of the calls alone.
final class CallNumbers: Sendable {
  private let state: Atomic<UInt64>

  init(seed: UInt64) {
    self.state = Atomic(seed)
  }

  func next() -> SeededRandom {
    // Far apart, so that the calls' numbers do not overlap.
    let number = self.state.wrappingAdd(0xd1b5_4a32_d192_ed03, ordering: .relaxed).oldValue
    var seeds = SeededRandom(seed: number)
    return SeededRandom(seed: seeds.next())
  }
}
