/// The stages of a call that may have something to do. Only these are looked at when parts move, so that what a call costs
/// grows no faster than the number of its stages.
struct ActiveStages {
  /// The stages that may keep a part: no other stage keeps one.
  private(set) var keepers = 0..<0
  /// The stages whose demand for results may have changed since async stages further in were told.
  private var changedDemand = 0..<0
  /// From this stage on, all stages were reset, and nothing has reached them since.
  var firstIdle = Int.max

  /// A stage may keep a part from now on.
  mutating func mayKeep(at index: Int) { self.keepers = self.keepers.including(index..<index + 1) }

  mutating func mayKeep(in stages: Range<Int>) { self.keepers = stages }

  /// Leaves out stages that keep nothing any more, as far as they are at either end of ``keepers``.
  ///
  /// - Parameter count: The number of all stages.
  mutating func settle(_ count: Int, _ keepsPart: (Int) -> Bool) {
    var (first, end) = (self.keepers.lowerBound, min(self.keepers.upperBound, count))
    while first < end, !keepsPart(first) { first += 1 }
    while first < end, !keepsPart(end - 1) { end -= 1 }
    let keepers = first..<max(first, end)
    guard keepers != self.keepers else { return }
    // A stage with less to keep has room for more.
    self.changedDemand = self.changedDemand.including(self.keepers)
    self.keepers = keepers
  }

  /// A stage may want more results, or fewer, than before.
  mutating func demandMayHaveChanged(at index: Int) {
    self.changedDemand = self.changedDemand.including(index..<index + 1)
  }

  /// The stages whose demand may have changed since the last time, and those that keep parts.
  mutating func takeChangedDemand() -> Range<Int> {
    let changed = self.changedDemand.including(self.keepers)
    self.changedDemand = 0..<0
    return changed
  }

  /// The stages inside of a stage that are not idle.
  ///
  /// - Parameter count: The number of all stages.
  func busy(insideOf index: Int, of count: Int) -> Range<Int> {
    let first = min(index + 1, count)
    return first..<max(first, min(self.firstIdle, count))
  }
}

extension Range<Int> {
  /// The smallest range with all members of both.
  fileprivate func including(_ other: Range<Int>) -> Range<Int> {
    if self.isEmpty { return other }
    if other.isEmpty { return self }
    return Swift.min(self.lowerBound, other.lowerBound)..<Swift.max(self.upperBound, other.upperBound)
  }
}
