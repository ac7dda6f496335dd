/// Sorts the entries of maps by key, so that equal messages have equal bytes.
enum MapOrder {
  /// - Parameter message: A message that nobody shares, nested no deeper than the limit.
  static func sortMaps(in message: MessagePointer, of schema: MessageSchema) {
    for field in schema.fields {
      guard let inner = field.message, inner.containsMaps || field.isMap else { continue }
      if field.isRepeated {
        let elements = message.elements(of: field)
        if inner.containsMaps {
          for case let message? in elements.lazy.map(\.message) { self.sortMaps(in: message, of: inner) }
        }
        if field.isMap, let key = inner.field(number: 1) {
          self.sortEntries(elements, of: field, by: key, in: message)
        }
      } else if message.has(field), let pointer = message.place(of: field).message {
        self.sortMaps(in: pointer, of: inner)
      }
    }
  }

  private static func sortEntries(
    _ entries: FieldElements,
    of field: FieldSchema,
    by key: FieldSchema,
    in message: MessagePointer
  ) {
    guard entries.count > 1 else { return }
    let kept = self.lastOfEachKey(entries.messages, key: key, sorted: true)
    for (place, entry) in zip(entries, kept) { place.store(entry) }
    message.setCount(kept.count, of: field)
  }

  /// Keeps only the last entry of each key.
  ///
  /// - Parameter sorted: Whether to sort by key. Else, entries without duplicate keys keep their order.
  static func lastOfEachKey(
    _ entries: [MessagePointer],
    key: FieldSchema,
    sorted: Bool
  ) -> [MessagePointer] {
    guard entries.count > 1 else { return entries }
    let ordered = entries.enumerated().sorted { left, right in
      if self.precedes(left.element, right.element, by: key) { return true }
      return !self.precedes(right.element, left.element, by: key) && left.offset < right.offset
    }
    var kept: [MessagePointer] = []
    kept.reserveCapacity(entries.count)
    for (_, entry) in ordered {
      if let last = kept.last, !self.precedes(last, entry, by: key) { kept.removeLast() }
      kept.append(entry)
    }
    return sorted || kept.count < entries.count ? kept : entries
  }

  private static func precedes(_ left: MessagePointer, _ right: MessagePointer, by key: FieldSchema) -> Bool {
    let left = left.place(of: key)
    let right = right.place(of: key)
    func compare<T: Comparable & BitwiseCopyable>(as type: T.Type) -> Bool {
      left.load(as: T.self) < right.load(as: T.self)
    }
    switch key.kind {
    case .int32, .sint32, .sfixed32, .bool: return compare(as: Int32.self)
    case .int64, .sint64, .sfixed64: return compare(as: Int64.self)
    case .uint32, .fixed32: return compare(as: UInt32.self)
    case .uint64, .fixed64: return compare(as: UInt64.self)
    default: return left.bytes.lexicographicallyPrecedes(right.bytes)
    }
  }
}
