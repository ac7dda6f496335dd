/// Yields indices in turn, each as often as its share says: an earliest-deadline-first schedule. Unlike
/// ``StrideScheduler`` it is exact for all shares, and a choice takes few steps even if one share is far greater than
/// the others. It is for few indices, such as the parts of a tree.
struct ShareScheduler {
  private struct Entry {
    /// When the index is due.
    var due: Double
    /// The time between two choices of the index: 1 / share.
    let stride: Double
    let index: Int

    func isBefore(_ other: Entry) -> Bool {
      self.due == other.due ? self.index < other.index : self.due < other.due
    }
  }

  /// The time is set back when it reaches this number of choices, so that fractions stay exact.
  private static let epoch = 0x1p30

  /// A heap: the entry that is due first is at index 0.
  private var heap: [Entry]
  /// When the last choice was due.
  private var clock = 0.0

  /// - Parameters:
  ///   - shares: At least one. All are greater than 0.
  ///   - waits: Which part of its stride each index has to wait for its first turn, from 0 to 1.
  init(_ shares: [Double], waits: [Double]) {
    let sum = shares.reduce(0, +)
    self.heap = zip(shares, waits).enumerated().map { index, pair in
      let stride = sum / pair.0
      return Entry(due: pair.1 * stride, stride: stride, index: index)
    }
    // A sorted list is a heap.
    self.heap.sort { $0.isBefore($1) }
  }

  mutating func next() -> Int {
    var entry = self.heap[0]
    let index = entry.index
    self.clock = entry.due
    entry.due += entry.stride
    self.sink(entry)
    if self.clock > Self.epoch { self.setBack() }
    return index
  }

  /// Which part of its stride each of the indices still has to wait, for a schedule that goes on with other shares.
  var waits: [Double] {
    var waits = Array(repeating: 0.0, count: self.heap.count)
    for entry in self.heap {
      waits[entry.index] = min(max((entry.due - self.clock) / entry.stride, 0), 1)
    }
    return waits
  }

  /// Puts the entry in the place of the first one, and brings it down to its own.
  private mutating func sink(_ entry: Entry) {
    var hole = 0
    while true {
      var child = 2 * hole + 1
      guard child < self.heap.count else { break }
      if child + 1 < self.heap.count, self.heap[child + 1].isBefore(self.heap[child]) { child += 1 }
      guard self.heap[child].isBefore(entry) else { break }
      self.heap[hole] = self.heap[child]
      hole = child
    }
    self.heap[hole] = entry
  }

  private mutating func setBack() {
    for index in self.heap.indices { self.heap[index].due -= self.clock }
    self.clock = 0
  }
}
