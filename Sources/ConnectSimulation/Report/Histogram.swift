internal import Connect

/// Times, counted in classes that are at most 1.6 % wide, so that it takes the same memory for any number of them.
struct Histogram: Sendable, Hashable {
  /// How many classes each power of two has.
  private static let classes = 64

  private var counts: [Int] = []
  private(set) var count = 0
  private(set) var largest = Duration.zero

  mutating func add(_ time: Duration, count: Int = 1) {
    guard count > 0 else { return }
    let index = Self.index(time)
    self.grow(to: index + 1)
    self.counts[index] += count
    self.count += count
    self.largest = max(self.largest, time)
  }

  mutating func add(_ other: Histogram) {
    self.grow(to: other.counts.count)
    for (index, count) in other.counts.enumerated() { self.counts[index] += count }
    self.count += other.count
    self.largest = max(self.largest, other.largest)
  }

  private mutating func grow(to count: Int) {
    guard count > self.counts.count else { return }
    self.counts.append(contentsOf: repeatElement(0, count: count - self.counts.count))
  }

  /// The mean, from the middles of the classes; nil if there are no times.
  var mean: Duration? {
    guard self.count > 0 else { return nil }
    var sum = 0.0
    for (index, count) in self.counts.enumerated() where count > 0 {
      let upper = min(Self.upperBound(index), self.largest)
      sum += Double(count) * (Self.lowerBound(index).seconds + upper.seconds) / 2
    }
    return .seconds(sum / Double(self.count))
  }

  /// The times that `count` parts of equal size lie between: from the smallest to the largest, interpolated within classes.
  ///
  /// - Parameter count: At least 1.
  func quantiles(_ count: Int) -> [Duration] {
    guard self.count > 0 else { return [] }
    var result: [Duration] = []
    var (sum, next) = (0.0, 0)
    for (index, inside) in self.counts.enumerated() where inside > 0 {
      let lower = min(Self.lowerBound(index), self.largest)
      let width = min(Self.upperBound(index), self.largest) - lower
      while next < count {
        let rank = Double(self.count) * Double(next) / Double(count)
        guard rank < sum + Double(inside) else { break }
        result.append(lower + width.scaled(by: (rank - sum) / Double(inside)))
        next += 1
      }
      sum += Double(inside)
    }
    while result.count <= count { result.append(self.largest) }
    return result
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

  private static func lowerBound(_ index: Int) -> Duration {
    index > 0 ? self.upperBound(index - 1) + .microseconds(1) : .zero
  }

  private static func upperBound(_ index: Int) -> Duration {
    guard index >= self.classes else { return .microseconds(index) }
    let shift = index / self.classes - 1
    return .microseconds(((index % self.classes + self.classes + 1) << shift) - 1)
  }
}
