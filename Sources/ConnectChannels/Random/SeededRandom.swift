/// A random source that a seed determines. Eight bytes, about a nanosecond per number (SplitMix64).
///
/// Not for secrets: whoever sees one number can compute all others.
public struct SeededRandom: RandomNumberGenerator, Sendable {
  private var state: UInt64

  /// A generator whose numbers depend on nothing but `seed`.
  public init(seed: UInt64) {
    self.state = seed
  }

  /// A generator with a seed from the system.
  package static func system() -> SeededRandom {
    SeededRandom(seed: .random(in: 0 ... .max))
  }

  public mutating func next() -> UInt64 {
    self.state &+= 0x9e37_79b9_7f4a_7c15
    var value = self.state
    value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
    value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
    return value ^ (value >> 31)
  }

  /// An index from 0 up to `count`, without a division. The bias is below `count` / 2^32.
  ///
  /// - Parameter count: From 1 to 2^32 - 1.
  package mutating func index(below count: Int) -> Int {
    Int(truncatingIfNeeded: ((self.next() >> 32) &* UInt64(truncatingIfNeeded: count)) >> 32)
  }

  /// A number from 0 up to 1.
  package mutating func fraction() -> Double {
    Double(self.next() >> 11) * 0x1p-53
  }
}
