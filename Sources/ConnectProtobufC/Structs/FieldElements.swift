/// The values of a repeated field.
///
/// Invariant: `array` points to `count` values of the field. The invariant of ``FieldPlace`` holds for each value.
struct FieldElements: RandomAccessCollection {
  private let field: FieldSchema
  private let array: UnsafeMutableRawPointer
  let count: Int

  @inline(__always)
  init(of field: FieldSchema, array: UnsafeMutableRawPointer, count: Int) {
    self.field = field
    self.array = array
    self.count = count
  }

  @inline(__always) var startIndex: Int { 0 }
  @inline(__always) var endIndex: Int { self.count }

  @inline(__always)
  subscript(index: Int) -> FieldPlace {
    assert(index >= 0 && index < self.count)
    return FieldPlace(of: self.field, at: self.array + index * self.field.valueSize)
  }

  /// The messages, without null pointers that C code may have left.
  var messages: [MessagePointer] {
    var messages: [MessagePointer] = []
    messages.reserveCapacity(self.count)
    for place in self {
      if let message = place.message { messages.append(message) }
    }
    return messages
  }
}
