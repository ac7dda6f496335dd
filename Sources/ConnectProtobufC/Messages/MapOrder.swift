/// Puts the entries of maps into the order of their keys, so that equal messages have equal bytes.
enum MapOrder {
  /// - Parameter message: One that nobody shares, nested no deeper than the limit.
  static func sort(_ message: UnsafeMutableRawPointer, _ schema: MessageSchema) {
    for field in schema.fields {
      guard let inner = field.message, inner.containsMaps || field.isMap else { continue }
      if field.cardinality == .repeated {
        let count = field.count(in: message)
        guard count > 0,
          let array = message.load(fromByteOffset: field.offset, as: UnsafeMutableRawPointer?.self)
        else { continue }
        let places = array.assumingMemoryBound(to: UnsafeMutableRawPointer.self)
        let messages = UnsafeMutableBufferPointer(start: places, count: count)
        if inner.containsMaps { for message in messages { self.sort(message, inner) } }
        if field.isMap, let key = inner.field(number: 1) {
          self.sortEntries(of: field, key, messages, in: message)
        }
      } else if field.isPresent(in: message), let pointer = FieldSchema.message(at: message + field.offset) {
        self.sort(pointer, inner)
      }
    }
  }

  private static func sortEntries(
    of field: FieldSchema,
    _ key: FieldSchema,
    _ entries: UnsafeMutableBufferPointer<UnsafeMutableRawPointer>,
    in message: UnsafeMutableRawPointer
  ) {
    let kept = self.lastOfEachKey(Array(entries), key, sorted: true)
    for (index, entry) in kept.enumerated() { entries[index] = entry }
    message.storeBytes(of: kept.count, toByteOffset: field.quantifierOffset, as: Int.self)
  }

  /// Of entries with one key, the last one counts, and only that is kept.
  ///
  /// - Parameter sorted: By key; else they stay as they are where no two have one key.
  static func lastOfEachKey(
    _ entries: [UnsafeMutableRawPointer],
    _ key: FieldSchema,
    sorted: Bool
  ) -> [UnsafeMutableRawPointer] {
    guard entries.count > 1 else { return entries }
    let ordered = entries.enumerated().sorted { left, right in
      if self.precedes(left.element, right.element, key) { return true }
      return !self.precedes(right.element, left.element, key) && left.offset < right.offset
    }
    var kept: [UnsafeMutableRawPointer] = []
    kept.reserveCapacity(entries.count)
    for (_, entry) in ordered {
      if let last = kept.last, !self.precedes(last, entry, key) { kept.removeLast() }
      kept.append(entry)
    }
    return sorted || kept.count < entries.count ? kept : entries
  }

  private static func precedes(_ left: UnsafeRawPointer, _ right: UnsafeRawPointer, _ key: FieldSchema)
    -> Bool
  {
    let left = left + key.offset
    let right = right + key.offset
    func compare<T: Comparable>(as type: T.Type) -> Bool { left.load(as: T.self) < right.load(as: T.self) }
    switch key.kind {
    case .int32, .sint32, .sfixed32, .bool: return compare(as: Int32.self)
    case .int64, .sint64, .sfixed64: return compare(as: Int64.self)
    case .uint32, .fixed32: return compare(as: UInt32.self)
    case .uint64, .fixed64: return compare(as: UInt64.self)
    default: return key.bytes(at: left).lexicographicallyPrecedes(key.bytes(at: right))
    }
  }
}
