/// Consecutive varints, as in a packed repeated field.
///
/// Invariant: the last byte of the content ends a varint, and ``next()`` is called at most ``count`` times. So no
/// varint is read past the content. The caller keeps the content.
struct PackedVarints {
  private var at: UnsafePointer<UInt8>
  let count: Int

  /// nil if the last varint is truncated.
  ///
  /// - Parameter content: At least one byte.
  @inline(__always)
  init?(_ content: UnsafeRawBufferPointer) {
    guard let start = content.baseAddress, content[content.count - 1] < 0x80 else { return nil }
    // Each varint has one byte whose highest bit is not set.
    var continuations = 0
    for byte in content { continuations &+= Int(truncatingIfNeeded: byte >> 7) }
    self.at = start.assumingMemoryBound(to: UInt8.self)
    self.count = content.count - continuations
  }

  /// The next of ``count`` varints; nil if it is too long.
  @inline(__always)
  mutating func next() -> UInt64? {
    var value = UInt64(self.at[0])
    self.at += 1
    guard value >= 0x80 else { return value }
    value &= 0x7f
    var shift: UInt64 = 7
    while true {
      let byte = UInt64(self.at[0])
      self.at += 1
      guard shift < 70 else { return nil }
      value |= (byte & 0x7f) << shift
      if byte < 0x80 { return value }
      shift += 7
    }
  }
}
