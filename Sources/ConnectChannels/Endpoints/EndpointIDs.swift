/// Makes names for endpoints, with the smallest slots that are free.
struct EndpointIDs {
  private var slotCount = 0
  private var vacantSlots: [Int] = []
  private var generation: UInt32 = 0

  mutating func make() -> EndpointID {
    self.generation += 1
    if let slot = self.vacantSlots.popLast() { return EndpointID(slot: slot, generation: self.generation) }
    self.slotCount += 1
    return EndpointID(slot: self.slotCount - 1, generation: self.generation)
  }

  /// The endpoint has left.
  mutating func release(_ id: EndpointID) { self.vacantSlots.append(id.slot) }

  /// All endpoints have left.
  mutating func releaseAll() {
    self.slotCount = 0
    self.vacantSlots = []
  }
}
