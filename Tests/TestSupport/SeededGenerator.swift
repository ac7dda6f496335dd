/// Random numbers that a failing test can repeat: the seed is printed. SplitMix64.
public struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  public init(
    seed: UInt64 = .random(in: 0...UInt64.max),
    file: StaticString = #fileID,
    function: StaticString = #function
  ) {
    self.state = seed
    print("\(file) \(function): seed \(seed)")
  }

  /// A generator that does not print its seed, since the caller includes the seed in failure messages.
  public init(quietly seed: UInt64) {
    self.state = seed
  }

  public mutating func next() -> UInt64 {
    self.state &+= 0x9e37_79b9_7f4a_7c15
    var value = self.state
    value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
    value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
    return value ^ (value >> 31)
  }
}
