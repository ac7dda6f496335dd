internal import Connect

/// The values of a repeated field while they are decoded.
///
/// Invariant: `memory` has room for `capacity` values of the field, of which the first `count` are written. The caller
/// keeps the arena that allocated the memory.
struct GrowingArray {
  private let field: FieldSchema
  private var memory: UnsafeMutableRawPointer?
  private var capacity = 0
  private var count = 0

  init(of field: FieldSchema) {
    self.field = field
  }

  /// The place after the last value.
  mutating func next(in memory: DecodingMemory) throws(ConnectError) -> FieldPlace {
    let size = self.field.valueSize
    if let memory = self.memory, self.count < self.capacity {
      return FieldPlace(of: self.field, at: memory + self.count * size)
    }
    let capacity = max(4, 2 * self.capacity)
    let new = try memory.allocate(capacity * size)
    if let old = self.memory { new.copyMemory(from: old, byteCount: self.count * size) }
    self.memory = new
    self.capacity = capacity
    return FieldPlace(of: self.field, at: new + self.count * size)
  }

  /// Counts the value that was just written behind the last value.
  mutating func keep() {
    self.count += 1
  }

  func store(in message: MessagePointer) {
    guard self.count > 0 else { return }
    message.setArray(self.memory, count: self.count, of: self.field)
  }
}
