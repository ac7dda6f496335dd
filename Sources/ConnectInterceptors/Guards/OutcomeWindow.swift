internal import Connect

/// Counts recent failures and successes, in a window that slides in ten steps.
struct OutcomeWindow {
  private struct Slot {
    /// Which step of time it counts.
    var step: Int64
    var failures = 0
    var total = 0
  }

  private static let slotCount = 10

  private let stepLength: Duration
  private var slots: [Slot]
  /// The present step, and when it ends: most outcomes fall into the same step as the one before.
  private var step: Int64 = 0
  private var stepEnd: Duration

  init(length: Duration) {
    self.stepLength = max(length.clamped / Self.slotCount, .nanoseconds(1))
    self.stepEnd = self.stepLength
    self.slots = Self.emptySlots(at: 0)
  }

  mutating func record(isFailure: Bool, at now: Duration) {
    self.advance(to: now)
    let index = self.slotIndex
    self.slots[index].total += 1
    if isFailure { self.slots[index].failures += 1 }
  }

  mutating func counts(at now: Duration) -> (failures: Int, total: Int) {
    self.advance(to: now)
    var counts = (failures: 0, total: 0)
    for slot in self.slots where slot.step > self.step - Int64(Self.slotCount) {
      counts.failures += slot.failures
      counts.total += slot.total
    }
    return counts
  }

  mutating func removeAll() {
    self.slots = Self.emptySlots(at: self.step)
  }

  private static func emptySlots(at step: Int64) -> [Slot] {
    [Slot](repeating: Slot(step: step), count: self.slotCount)
  }

  private var slotIndex: Int { Int(self.step % Int64(Self.slotCount)) }

  /// A time before the present step, from a call that was overtaken, counts in the present step.
  private mutating func advance(to now: Duration) {
    guard now >= self.stepEnd else { return }
    self.step = max(self.step + 1, Int64((now / self.stepLength).rounded(.down)))
    self.stepEnd = self.stepLength * (self.step + 1)
    self.slots[self.slotIndex] = Slot(step: self.step)
  }
}
