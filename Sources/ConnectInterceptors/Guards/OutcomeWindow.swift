/// How many calls failed and succeeded of late: a window that slides in ten steps.
struct OutcomeWindow {
  private struct Slot {
    /// Which step of time it counts.
    var step: Int64 = .min
    var failures = 0
    var total = 0
  }

  private static let slotCount = 10

  private let stepLength: Duration
  private var slots = [Slot](repeating: Slot(), count: Self.slotCount)

  init(length: Duration) {
    self.stepLength = max(length / Self.slotCount, .nanoseconds(1))
  }

  mutating func record(isFailure: Bool, at now: Duration) {
    let step = self.step(at: now)
    let index = Int(step % Int64(Self.slotCount))
    if self.slots[index].step != step { self.slots[index] = Slot(step: step) }
    self.slots[index].total += 1
    if isFailure { self.slots[index].failures += 1 }
  }

  func counts(at now: Duration) -> (failures: Int, total: Int) {
    let oldest = self.step(at: now) - Int64(Self.slotCount)
    var counts = (failures: 0, total: 0)
    for slot in self.slots where slot.step > oldest {
      counts.failures += slot.failures
      counts.total += slot.total
    }
    return counts
  }

  mutating func removeAll() {
    self.slots = [Slot](repeating: Slot(), count: Self.slotCount)
  }

  private func step(at now: Duration) -> Int64 {
    Int64(max(0, (now / self.stepLength).rounded(.down)))
  }
}
