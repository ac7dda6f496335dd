/// The fields of a message type, by number.
///
/// Invariant: as for ``FieldSchema``; `start` points to `count` records.
struct FieldList: RandomAccessCollection {
  private let start: UnsafeMutablePointer<FieldSchema.Record>
  let count: Int

  init(start: UnsafeMutablePointer<FieldSchema.Record>, count: Int) {
    self.start = start
    self.count = count
  }

  @inline(__always) var startIndex: Int { 0 }
  @inline(__always) var endIndex: Int { self.count }

  @inline(__always)
  subscript(index: Int) -> FieldSchema {
    assert(index >= 0 && index < self.count)
    return FieldSchema(self.start + index)
  }

  /// The index of the field with this number.
  ///
  /// - Parameter next: The index to try first, as fields mostly come in their order.
  @inline(__always)
  func index(ofNumber number: UInt32, from next: Int = 0) -> Int? {
    if next < self.count, self[next].number == number { return next }
    if next + 1 < self.count, self[next + 1].number == number { return next + 1 }
    return self.search(number)
  }

  private func search(_ number: UInt32) -> Int? {
    var low = 0
    var high = self.count
    while low < high {
      let middle = (low + high) / 2
      let candidate = self[middle].number
      if candidate == number { return middle }
      if candidate < number { low = middle + 1 } else { high = middle }
    }
    return nil
  }
}
