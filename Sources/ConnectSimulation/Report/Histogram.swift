/// Times, counted in classes that are at most 1.6 % wide, so that it takes the same memory for any number of them.
struct Histogram {
  /// How many classes each power of two has.
  private static let classes = 64

  private var counts: [Int] = []
  private(set) var count = 0
  private(set) var largest = Duration.zero

  mutating func add(_ time: Duration) {
    let index = Self.index(time)
    if index >= self.counts.count {
      self.counts.append(contentsOf: repeatElement(0, count: index + 1 - self.counts.count))
    }
    self.counts[index] += 1
    self.count += 1
    self.largest = max(self.largest, time)
  }

  /// The time that a part of all times does not exceed; nil if there are none.
  ///
  /// - Parameter part: From 0 to 1.
  func percentile(_ part: Double) -> Duration? {
    guard self.count > 0 else { return nil }
    let rank = max(Int((Double(self.count) * part).rounded(.up)), 1)
    var sum = 0
    for (index, count) in self.counts.enumerated() {
      sum += count
      if sum >= rank { return min(Self.upperBound(index), self.largest) }
    }
    return self.largest
  }

  /// In microseconds: up to 64, each number has its own class, then each power of two has 64.
  private static func index(_ time: Duration) -> Int {
    let (seconds, attoseconds) = time.components
    let micros = UInt64(clamping: seconds) &* 1_000_000 &+ UInt64(clamping: attoseconds / 1_000_000_000_000)
    guard micros >= UInt64(self.classes) else { return Int(micros) }
    let shift = 63 - micros.leadingZeroBitCount - 6
    return (shift + 1) * self.classes + Int(micros >> UInt64(shift)) - self.classes
  }

  private static func upperBound(_ index: Int) -> Duration {
    guard index >= self.classes else { return .microseconds(index) }
    let shift = index / self.classes - 1
    return .microseconds(((index % self.classes + self.classes + 1) << shift) - 1)
  }
}
