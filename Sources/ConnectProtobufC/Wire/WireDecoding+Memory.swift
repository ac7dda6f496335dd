internal import CProtobufC
internal import Connect

/// Memory for decoded values.
extension WireDecoding {
  @inline(__always)
  func allocate(_ size: Int, for table: MessageTable) throws(ConnectError) -> UnsafeMutableRawPointer {
    guard let memory = self.arena.allocate(size) else { throw self.tooMuchMemory(for: table) }
    return memory
  }

  /// The first free place behind the values of a repeated field. Does not change the field's count.
  func places(
    for added: Int,
    of field: FieldSchema,
    in message: MessagePointer,
    of table: MessageTable
  ) throws(ConnectError) -> FieldPlace {
    let count = message.storedCount(of: field)
    let size = field.valueSize
    let array = try self.array(
      message.array(of: field),
      count: count,
      adding: added,
      stride: size,
      for: table
    )
    message.setArray(array, of: field)
    return FieldPlace(of: field, at: array + count * size)
  }

  /// The same array, or a copy of it with more room.
  ///
  /// - Parameter old: nil, or from this function.
  @inline(__always)
  private func array(
    _ old: UnsafeMutableRawPointer?,
    count: Int,
    adding added: Int,
    stride: Int,
    for table: MessageTable
  ) throws(ConnectError) -> UnsafeMutableRawPointer {
    if let old, SizedArray(values: old).capacity - count >= added { return old }
    let capacity = max(old == nil ? (added == 1 ? 4 : added) : 2 * count, count + added)
    let memory = try self.allocate(SizedArray.size(capacity: capacity, stride: stride), for: table)
    let new = SizedArray(memory, capacity: capacity)
    if let old { new.values.copyMemory(from: old, byteCount: count * stride) }
    return new.values
  }

  /// Keeps a field that the table does not know, so that it is encoded again.
  func keepUnknownField(
    tag: UInt32,
    from reader: inout WireReader,
    in message: MessagePointer,
    of table: MessageTable
  ) throws(ConnectError) {
    let content = try reader.skip(wireType: tag & 7, of: tag >> 3)
    let base = message.base
    let count = Int(base.pointee.n_unknown_fields)
    let stride = MemoryLayout<ProtobufCMessageUnknownField>.stride
    let old = base.pointee.unknown_fields.map { UnsafeMutableRawPointer($0) }
    let array = try self.array(old, count: count, adding: 1, stride: stride, for: table)
    let copy = try self.allocate(content.count, for: table)
    copy.store(content)
    var field = ProtobufCMessageUnknownField()
    field.tag = tag >> 3
    field.wire_type = ProtobufCWireType(rawValue: tag & 7)
    field.len = content.count
    field.data = copy.assumingMemoryBound(to: UInt8.self)
    (array + count * stride).initializeMemory(
      as: ProtobufCMessageUnknownField.self,
      repeating: field,
      count: 1
    )
    base.pointee.unknown_fields = array.assumingMemoryBound(to: ProtobufCMessageUnknownField.self)
    base.pointee.n_unknown_fields = UInt32(count + 1)
  }
}

/// A growable array in C's layout, with its capacity stored in front.
///
/// Invariant: the `Int` in front of `values` is the capacity. All arrays of a message that is being decoded have this
/// form, as only the decode has allocated them.
private struct SizedArray {
  private static let head = MemoryLayout<Int>.size

  let values: UnsafeMutableRawPointer

  @inline(__always)
  init(values: UnsafeMutableRawPointer) {
    self.values = values
  }

  /// - Parameter memory: Memory of the size that ``size(capacity:stride:)`` returns.
  @inline(__always)
  init(_ memory: UnsafeMutableRawPointer, capacity: Int) {
    memory.storeBytes(of: capacity, as: Int.self)
    self.values = memory + Self.head
  }

  @inline(__always) var capacity: Int { (self.values - Self.head).load(as: Int.self) }

  @inline(__always)
  static func size(capacity: Int, stride: Int) -> Int { Self.head + capacity * stride }
}
