/// Yields indices in turn, each as often as its weight says. It is the static stride scheduler of gRPC's weighted round
/// robin (gRFC A58): an earliest-deadline-first schedule without a queue.
///
/// It goes round all indices again and again. An index of the largest weight is chosen in every round, an index of half
/// that weight in every second round. The rounds that skip an index are spread evenly. A choice takes at most
/// `Limits.most` steps on average, whatever the weights.
struct StrideScheduler: Hashable, Sendable {
  /// How far a weight may be from the mean, as a factor. A weight beyond a limit counts as the limit.
  struct Limits {
    /// Bounds the steps of a choice.
    var most: Double
    /// Keeps an endpoint in the rotation, so that it goes on reporting.
    var least: Double

    /// gRPC's limits, for measured weights.
    static var reported: Limits { Limits(most: 10, least: 0.01) }
    /// For weights that a person has set.
    static var given: Limits { Limits(most: 32, least: 0) }
  }

  /// The weight of an index that is chosen in every round: a power of two, so that a mask is the remainder.
  private static let full: UInt32 = 1 << 16

  /// From 1 to `full`.
  let weights: [UInt32]
  private var index: Int
  private var round: UInt32

  /// - Parameter weights: At least one. Zero, negative and not-a-number mean unknown: the mean of the others. With
  ///   fewer than two that are known all weights are the same.
  init(_ weights: [Double], limits: Limits, random: inout SeededRandom) {
    let known = weights.lazy.filter { $0 > 0 && $0.isFinite }
    let count = known.reduce(into: 0) { count, _ in count += 1 }
    self.index = random.index(below: weights.count)
    self.round = UInt32(truncatingIfNeeded: random.next())
    guard count >= 2 else {
      self.weights = Array(repeating: Self.full, count: weights.count)
      return
    }
    let largest = known.reduce(0, max)
    // Scaled first: the sum of large weights must not overflow.
    let mean = known.reduce(0) { $0 + $1 / largest } / Double(count)
    let top = min(1, mean * limits.most)
    let scale = Double(Self.full) / top
    let bottom = max(1, mean * limits.least * scale)
    self.weights = weights.map { weight in
      let share = weight > 0 && weight.isFinite ? weight / largest : mean
      // Rounded to the nearest.
      return UInt32(min(max(share * scale, bottom), Double(Self.full)) + 0.5)
    }
  }

  mutating func next() -> Int {
    while true {
      let index = self.index
      let round = self.round
      if index + 1 == self.weights.count {
        self.index = 0
        self.round = round &+ 1
      } else {
        self.index = index + 1
      }
      let weight = self.weights[index]
      // Neighbours with equal weights are skipped in different rounds.
      let offset = UInt32(truncatingIfNeeded: index) &* (Self.full / 2 - 1)
      let position = (weight &* round &+ offset) & (Self.full - 1)
      if position >= Self.full - weight { return index }
    }
  }
}
