/// A set of field indices, optimised for indices below 64.
struct FieldSet {
  private var low: UInt64 = 0
  private var high: Set<Int>?

  func contains(_ index: Int) -> Bool {
    index >= 64 ? self.high?.contains(index) ?? false : self.low & (1 << UInt64(index)) != 0
  }

  /// Whether `index` was not there before.
  @inline(__always)
  mutating func insert(_ index: Int) -> Bool {
    if index >= 64 {
      var high = self.high.take() ?? []
      defer { self.high = high }
      return high.insert(index).inserted
    }
    let bit: UInt64 = 1 << UInt64(index)
    defer { self.low |= bit }
    return self.low & bit == 0
  }
}
