internal import CProtobufC
internal import Connect

/// Reads protobuf's binary encoding into structs, in one pass that checks what it reads: depth, memory, lengths, UTF-8.
///
/// libprotobuf-c's own decoder would crash on deep nesting, cut strings at a NUL, let invalid UTF-8 pass, merge messages
/// wrongly and read a Boolean from any bytes; with checks in front of it, it would also take twice the time.
struct WireDecoding {
  private typealias Field = WireTable.Field

  let arena: Arena
  let maximumDepth: Int
  let isPartial: Bool

  /// A new message.
  func message(
    _ bytes: UnsafeRawBufferPointer,
    _ table: UnsafePointer<WireTable>
  ) throws(ConnectError) -> UnsafeMutableRawPointer {
    let message = try self.emptyMessage(table)
    try self.merge(bytes, into: message, table, depth: 0)
    return message
  }

  private func emptyMessage(_ table: UnsafePointer<WireTable>) throws(ConnectError) -> UnsafeMutableRawPointer
  {
    let message = try self.allocate(table.pointee.size, table)
    message.copyMemory(from: table.pointee.emptyMessage, byteCount: table.pointee.size)
    return message
  }

  /// Adds to a message that may hold something already.
  private func merge(
    _ bytes: UnsafeRawBufferPointer,
    into message: UnsafeMutableRawPointer,
    _ table: UnsafePointer<WireTable>,
    depth: Int
  ) throws(ConnectError) {
    guard depth < self.maximumDepth else { throw self.tooDeep(table) }
    let type = table.pointee
    guard let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) else {
      try self.checkCounted(FieldSet(), count: 0, table)
      return
    }
    var reader = WireReader(at: start, end: start + bytes.count, descriptor: type.descriptor)
    var counted = FieldSet()
    var countedCount = 0
    var next = 0
    while reader.at < reader.end {
      let start = reader.at
      let tag = try reader.tag()
      guard let index = Self.index(of: tag >> 3, type, from: next) else {
        try self.unknown(tag, from: start, &reader, message, table)
        continue
      }
      let field = type.fields[index]
      // The next one of a repeated field, or the field after this one.
      next = index
      if field.isCounted, counted.insert(index) { countedCount += 1 }
      guard tag & 7 == UInt32(field.wireType) else {
        try self.run(tag, &reader, field, message, table)
        continue
      }
      try self.value(&reader, field, message, table, depth: depth)
    }
    try self.checkCounted(counted, count: countedCount, table)
  }

  @inline(__always)
  private func checkCounted(
    _ counted: FieldSet,
    count: Int,
    _ table: UnsafePointer<WireTable>
  ) throws(ConnectError) {
    guard count == table.pointee.countedCount || self.isPartial else {
      throw self.lacksRequired(counted, table)
    }
  }

  /// The index of the field with this number; fields mostly come in their order.
  private static func index(of number: UInt32, _ type: WireTable, from next: Int) -> Int? {
    let fields = type.fields
    let count = type.fieldCount
    if next < count, fields[next].number == number { return next }
    if next + 1 < count, fields[next + 1].number == number { return next + 1 }
    var low = 0
    var high = count
    while low < high {
      let middle = (low + high) / 2
      let candidate = fields[middle].number
      if candidate == number { return middle }
      if candidate < number { low = middle + 1 } else { high = middle }
    }
    return nil
  }

  // MARK: Values

  @inline(__always)
  private func value(
    _ reader: inout WireReader,
    _ field: Field,
    _ message: UnsafeMutableRawPointer,
    _ table: UnsafePointer<WireTable>,
    depth: Int
  ) throws(ConnectError) {
    let kind = field.kind
    let place: UnsafeMutableRawPointer
    if field.form == .repeated {
      place = try self.places(for: 1, field, message, table)
    } else {
      place = message + Int(field.offset)
    }
    switch field.wireType {
    case 0:
      Self.store(try reader.varint(field.number), kind, at: place)
    case 1:
      place.copyMemory(from: try reader.bytes(8, field.number), byteCount: 8)
    case 5:
      place.copyMemory(from: try reader.bytes(4, field.number), byteCount: 4)
    default:
      let content = try reader.content(field.number)
      switch kind {
      case .string:
        place.storeBytes(of: try self.string(content, field, table), as: UnsafeMutableRawPointer?.self)
      case .bytes:
        place.storeBytes(of: try self.bytes(content, field, table), as: ProtobufCBinaryData.self)
      default:
        try self.submessage(content, field, at: place, message, table, depth: depth)
      }
    }
    let quantifier = message + Int(field.quantifierOffset)
    switch field.form {
    case .plain: break
    case .flagged: quantifier.storeBytes(of: 1, as: Int32.self)
    case .oneofMember: quantifier.storeBytes(of: field.number, as: UInt32.self)
    case .repeated: quantifier.storeBytes(of: quantifier.load(as: Int.self) + 1, as: Int.self)
    }
  }

  /// A message; of a field that is not repeated, more of the message that is there.
  private func submessage(
    _ content: UnsafeRawBufferPointer,
    _ field: Field,
    at place: UnsafeMutableRawPointer,
    _ message: UnsafeMutableRawPointer,
    _ table: UnsafePointer<WireTable>,
    depth: Int
  ) throws(ConnectError) {
    guard let inner = field.message else {
      throw self.failure(field, table, "of an unknown type")
    }
    let isThere =
      switch field.form {
      case .repeated: false
      case .oneofMember:
        message.load(fromByteOffset: Int(field.quantifierOffset), as: UInt32.self)
          == field.number
      case .plain, .flagged: true
      }
    let old = isThere ? place.load(as: UnsafeMutableRawPointer?.self) : nil
    let target = if let old { old } else { try self.emptyMessage(inner) }
    place.storeBytes(of: target, as: UnsafeMutableRawPointer?.self)
    try self.merge(content, into: target, inner, depth: depth + 1)
  }

  private static func store(_ value: UInt64, _ kind: FieldKind, at place: UnsafeMutableRawPointer) {
    switch kind {
    case .int64, .uint64:
      place.storeBytes(of: value, as: UInt64.self)
    case .sint64:
      place.storeBytes(of: (value >> 1) ^ (0 &- (value & 1)), as: UInt64.self)
    case .sint32:
      let low = UInt32(truncatingIfNeeded: value)
      place.storeBytes(of: (low >> 1) ^ (0 &- (low & 1)), as: UInt32.self)
    case .bool:
      place.storeBytes(of: value == 0 ? 0 : 1, as: Int32.self)
    default:
      place.storeBytes(of: UInt32(truncatingIfNeeded: value), as: UInt32.self)
    }
  }

  /// Several numbers with one length in front, which is the one other wire type that a field may have.
  private func run(
    _ tag: UInt32,
    _ reader: inout WireReader,
    _ field: Field,
    _ message: UnsafeMutableRawPointer,
    _ table: UnsafePointer<WireTable>
  ) throws(ConnectError) {
    guard tag & 7 == 2, field.form == .repeated, field.kind.isPackable else {
      // A value that cannot be passed over is the greater problem.
      try reader.skip(tag & 7, tag >> 3)
      throw self.wrongWireType(tag, field, table)
    }
    let content = try reader.content(tag >> 3)
    guard let start = content.baseAddress, content.count > 0 else { return }
    let kind = field.kind
    let count: Int
    if field.wireType != 0 {
      guard content.count % kind.size == 0 else {
        throw self.failure(field, table, "\(content.count) bytes are no run of values")
      }
      count = content.count / kind.size
      try self.places(for: count, field, message, table).copyMemory(from: start, byteCount: content.count)
    } else {
      guard content[content.count - 1] < 0x80 else {
        throw self.failure(field, table, "a cut varint")
      }
      // Each varint has one byte whose highest bit is not set.
      var continuations = 0
      for byte in content { continuations &+= Int(truncatingIfNeeded: byte >> 7) }
      count = content.count - continuations
      var place = try self.places(for: count, field, message, table)
      let bytes = start.assumingMemoryBound(to: UInt8.self)
      var index = 0
      while index < content.count {
        var value = UInt64(bytes[index])
        index += 1
        if value >= 0x80 {
          value &= 0x7f
          var shift: UInt64 = 7
          // The last byte ends a varint, so that this ends before the end.
          while true {
            let byte = UInt64(bytes[index])
            index += 1
            guard shift < 70 else {
              throw self.failure(field, table, "a varint in a run of values is too long")
            }
            value |= (byte & 0x7f) << shift
            if byte < 0x80 { break }
            shift += 7
          }
        }
        Self.store(value, kind, at: place)
        place += kind.size
      }
    }
    let quantifier = message + Int(field.quantifierOffset)
    quantifier.storeBytes(of: quantifier.load(as: Int.self) + count, as: Int.self)
  }

  // MARK: Text

  /// A C string.
  private func string(
    _ content: UnsafeRawBufferPointer,
    _ field: Field,
    _ table: UnsafePointer<WireTable>
  ) throws(ConnectError) -> UnsafeMutableRawPointer {
    let copy = try self.allocate(content.count + 1, table)
    copy.storeBytes(of: 0, toByteOffset: content.count, as: UInt8.self)
    guard let start = content.baseAddress else { return copy }
    switch UTF8Check(copying: start, count: content.count, to: copy) {
    case .valid: return copy
    case .containsNUL:
      throw self.failure(field, table, "has a NUL, which a C string cannot hold")
    case .invalid:
      throw self.failure(field, table, "invalid UTF-8")
    }
  }

  /// Bytes, or a string that is held as such.
  private func bytes(
    _ content: UnsafeRawBufferPointer,
    _ field: Field,
    _ table: UnsafePointer<WireTable>
  ) throws(ConnectError) -> ProtobufCBinaryData {
    guard content.count > 0, let start = content.baseAddress else { return ProtobufCBinaryData() }
    let copy = try self.allocate(content.count, table)
    if field.isStringAsBytes {
      if case .invalid = UTF8Check(copying: start, count: content.count, to: copy) {
        throw self.failure(field, table, "invalid UTF-8")
      }
    } else {
      copy.copyMemory(from: start, byteCount: content.count)
    }
    return ProtobufCBinaryData(len: content.count, data: copy.assumingMemoryBound(to: UInt8.self))
  }

  // MARK: Unknown fields

  /// Keeps a field of which the table does not know, so that it is encoded again.
  private func unknown(
    _ tag: UInt32,
    from start: WireReader.Position,
    _ reader: inout WireReader,
    _ message: UnsafeMutableRawPointer,
    _ table: UnsafePointer<WireTable>
  ) throws(ConnectError) {
    let content = reader.at
    try reader.skip(tag & 7, tag >> 3)
    let base = message.assumingMemoryBound(to: ProtobufCMessage.self)
    let count = Int(base.pointee.n_unknown_fields)
    let stride = MemoryLayout<ProtobufCMessageUnknownField>.stride
    let array = try self.array(base.pointee.unknown_fields, count: count, adding: 1, stride, table)
    let length = reader.at - content
    let copy = try self.allocate(length, table)
    copy.copyMemory(from: content, byteCount: length)
    var field = ProtobufCMessageUnknownField()
    field.tag = tag >> 3
    field.wire_type = ProtobufCWireType(rawValue: tag & 7)
    field.len = length
    field.data = copy.assumingMemoryBound(to: UInt8.self)
    (array + count * stride).initializeMemory(
      as: ProtobufCMessageUnknownField.self,
      repeating: field,
      count: 1
    )
    base.pointee.unknown_fields = array.assumingMemoryBound(to: ProtobufCMessageUnknownField.self)
    base.pointee.n_unknown_fields = UInt32(count + 1)
  }

  // MARK: Memory

  @inline(__always)
  private func allocate(
    _ size: Int,
    _ table: UnsafePointer<WireTable>
  ) throws(ConnectError) -> UnsafeMutableRawPointer {
    guard let memory = self.arena.allocate(size) else { throw self.tooMuchMemory(table) }
    return memory
  }

  /// The places behind the values of a repeated field. Its count is not changed.
  private func places(
    for added: Int,
    _ field: Field,
    _ message: UnsafeMutableRawPointer,
    _ table: UnsafePointer<WireTable>
  ) throws(ConnectError) -> UnsafeMutableRawPointer {
    let count = message.load(fromByteOffset: Int(field.quantifierOffset), as: Int.self)
    let place = message + Int(field.offset)
    let size = field.kind.size
    let old = place.load(as: UnsafeMutableRawPointer?.self)
    let array = try self.array(old, count: count, adding: added, size, table)
    place.storeBytes(of: array, as: UnsafeMutableRawPointer?.self)
    return array + count * size
  }

  /// The same array, or a copy of it with more room: an array has how much room it has in front of it.
  @inline(__always)
  private func array(
    _ old: UnsafeMutableRawPointer?,
    count: Int,
    adding added: Int,
    _ size: Int,
    _ table: UnsafePointer<WireTable>
  ) throws(ConnectError) -> UnsafeMutableRawPointer {
    let head = MemoryLayout<Int>.size
    if let old, (old - head).load(as: Int.self) - count >= added { return old }
    let capacity = max(old == nil ? (added == 1 ? 4 : added) : 2 * count, count + added)
    let new = try self.allocate(head + capacity * size, table) + head
    (new - head).storeBytes(of: capacity, as: Int.self)
    if let old { new.copyMemory(from: old, byteCount: count * size) }
    return new
  }

  // MARK: Errors

  // All in functions of their own: what makes their texts would take stack at every level.

  @inline(never)
  private func tooDeep(_ table: UnsafePointer<WireTable>) -> ConnectError {
    .undecodable(
      "\(table.pointee.descriptor.fullName): more than \(self.maximumDepth) nested messages",
      .resourceExhausted
    )
  }

  @inline(never)
  private func tooMuchMemory(_ table: UnsafePointer<WireTable>) -> ConnectError {
    .undecodable(
      "\(table.pointee.descriptor.fullName): takes more than \(self.arena.limit) bytes of memory",
      .resourceExhausted
    )
  }

  @inline(never)
  private func lacksRequired(_ counted: FieldSet, _ table: UnsafePointer<WireTable>) -> ConnectError {
    let fields = (0..<table.pointee.fieldCount).filter { table.pointee.fields[$0].isCounted }
    let missing = fields.first { !counted.contains($0) }.map { table.pointee.fields[$0].descriptor }
    let name = missing.map { table.pointee.descriptor.name(of: $0) } ?? table.pointee.descriptor.fullName
    return .undecodable("\(name): required, but not set")
  }

  @inline(never)
  private func wrongWireType(
    _ tag: UInt32,
    _ field: Field,
    _ table: UnsafePointer<WireTable>
  ) -> ConnectError {
    self.failure(field, table, "wrong wire type \(tag & 7)")
  }

  @inline(never)
  private func failure(
    _ field: Field,
    _ table: UnsafePointer<WireTable>,
    _ problem: String
  ) -> ConnectError {
    .undecodable("\(table.pointee.descriptor.name(of: field.descriptor)): \(problem)")
  }
}
