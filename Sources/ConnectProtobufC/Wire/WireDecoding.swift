internal import CProtobufC
internal import Connect

/// Decodes protobuf's binary encoding into structs, in one pass that also checks depth, memory, lengths and UTF-8.
///
/// libprotobuf-c's decoder would crash on deep nesting, cut strings at a NUL, accept invalid UTF-8, merge messages
/// wrongly and read a Boolean from any bytes. With checks in front of it, decoding would also take twice the time.
///
/// Invariant: it writes to messages of its own arena alone, at the places that their table gives. Input is read through
/// ``WireReader`` or ``PackedVarints``, and copied to memory of the same length; a string gets one more byte for its NUL.
struct WireDecoding {
  let arena: Arena
  let maximumDepth: Int
  let isPartial: Bool

  /// A new message of the type of `table`.
  func message(from bytes: UnsafeRawBufferPointer, of table: MessageTable) throws(ConnectError)
    -> MessagePointer
  {
    let message = try self.emptyMessage(of: table)
    try self.merge(bytes, into: message, of: table, depth: 0)
    return message
  }

  private func emptyMessage(of table: MessageTable) throws(ConnectError) -> MessagePointer {
    let message = try self.allocate(table.size, for: table)
    message.copyMemory(from: table.emptyMessage, byteCount: table.size)
    return MessagePointer(message)
  }

  /// Merges fields into a message that may already have content.
  private func merge(
    _ bytes: UnsafeRawBufferPointer,
    into message: MessagePointer,
    of table: MessageTable,
    depth: Int
  ) throws(ConnectError) {
    guard depth < self.maximumDepth else { throw self.tooDeep(in: table) }
    guard var reader = WireReader(bytes, of: table) else {
      try self.checkCounted(FieldSet(), count: 0, of: table)
      return
    }
    let fields = table.fields
    var counted = FieldSet()
    var countedCount = 0
    var next = 0
    while !reader.isAtEnd {
      let tag = try reader.tag()
      guard let index = fields.index(ofNumber: tag >> 3, from: next) else {
        try self.keepUnknownField(tag: tag, from: &reader, in: message, of: table)
        continue
      }
      let field = fields[index]
      // The next field is another value of this repeated field, or the field after it.
      next = index
      if field.isCounted, counted.insert(index) { countedCount += 1 }
      guard tag & 7 == UInt32(field.wireType) else {
        try self.readRun(of: field, tag: tag, from: &reader, into: message, of: table)
        continue
      }
      try self.readValue(of: field, from: &reader, into: message, of: table, depth: depth)
    }
    try self.checkCounted(counted, count: countedCount, of: table)
  }

  @inline(__always)
  private func checkCounted(_ counted: FieldSet, count: Int, of table: MessageTable) throws(ConnectError) {
    guard count == table.countedCount || self.isPartial else {
      throw self.lacksRequired(besides: counted, in: table)
    }
  }

  // MARK: Values

  @inline(__always)
  private func readValue(
    of field: FieldSchema,
    from reader: inout WireReader,
    into message: MessagePointer,
    of table: MessageTable,
    depth: Int
  ) throws(ConnectError) {
    let place: FieldPlace
    if field.isRepeated {
      place = try self.places(for: 1, of: field, in: message, of: table)
    } else {
      place = message.place(of: field)
    }
    switch field.wireType {
    case 0:
      place.store(varint: try reader.varint(of: field.number), as: field.storedKind)
    case 1:
      place.store(try reader.fixed(UInt64.self, of: field.number))
    case 5:
      place.store(try reader.fixed(UInt32.self, of: field.number))
    default:
      let content = try reader.content(of: field.number)
      switch field.storedKind {
      case .string: place.store(try self.string(content, of: field, in: table))
      case .bytes: place.store(try self.bytes(content, of: field, in: table))
      default: try self.readMessage(content, into: message, at: place, of: table, depth: depth)
      }
    }
    message.countValue(of: field)
  }

  /// A message. If the field is not repeated, merges into the message that is already there.
  private func readMessage(
    _ content: UnsafeRawBufferPointer,
    into message: MessagePointer,
    at place: FieldPlace,
    of table: MessageTable,
    depth: Int
  ) throws(ConnectError) {
    let field = place.field
    guard let inner = field.table else {
      throw self.failure("of an unknown type", of: field, in: table)
    }
    let isThere =
      switch field.form {
      case .repeated: false
      case .oneofMember: message.isSelected(field)
      case .plain, .flagged: true
      }
    let old = isThere ? place.message : nil
    let target = if let old { old } else { try self.emptyMessage(of: inner) }
    place.store(target)
    try self.merge(content, into: target, of: inner, depth: depth + 1)
  }

  /// A packed run of numbers. This is the only other wire type that a field may have.
  private func readRun(
    of field: FieldSchema,
    tag: UInt32,
    from reader: inout WireReader,
    into message: MessagePointer,
    of table: MessageTable
  ) throws(ConnectError) {
    guard tag & 7 == 2, field.isRepeated, field.kind.isPackable else {
      // If the value cannot even be skipped, report that error first.
      try reader.skip(wireType: tag & 7, of: tag >> 3)
      throw self.wrongWireType(tag, of: field, in: table)
    }
    let content = try reader.content(of: tag >> 3)
    guard let start = content.baseAddress, content.count > 0 else { return }
    let kind = field.storedKind
    let size = kind.size
    let count: Int
    if field.wireType != 0 {
      guard content.count % size == 0 else {
        throw self.failure("\(content.count) bytes are no run of values", of: field, in: table)
      }
      count = content.count / size
      try self.places(for: count, of: field, in: message, of: table).copyNumbers(from: start, count: count)
    } else {
      guard var varints = PackedVarints(content) else {
        throw self.failure("a cut varint", of: field, in: table)
      }
      count = varints.count
      var place = try self.places(for: count, of: field, in: message, of: table)
      for _ in 0..<count {
        guard let value = varints.next() else {
          throw self.failure("a varint in a run of values is too long", of: field, in: table)
        }
        place.store(varint: value, as: kind)
        place = place.advanced(byBytes: size)
      }
    }
    message.setCount(message.storedCount(of: field) + count, of: field)
  }

  // MARK: Text

  /// A C string.
  private func string(
    _ content: UnsafeRawBufferPointer,
    of field: FieldSchema,
    in table: MessageTable
  ) throws(ConnectError) -> UnsafeMutableRawPointer {
    let copy = try self.allocate(content.count + 1, for: table)
    copy.storeBytes(of: 0, toByteOffset: content.count, as: UInt8.self)
    switch UTF8Check(copying: content, to: copy) {
    case .valid: return copy
    case .containsNUL:
      throw self.failure("has a NUL, which a C string cannot hold", of: field, in: table)
    case .invalid:
      throw self.failure("invalid UTF-8", of: field, in: table)
    }
  }

  /// Bytes, or a string that is stored as bytes.
  private func bytes(
    _ content: UnsafeRawBufferPointer,
    of field: FieldSchema,
    in table: MessageTable
  ) throws(ConnectError) -> ProtobufCBinaryData {
    guard content.count > 0 else { return ProtobufCBinaryData() }
    let copy = try self.allocate(content.count, for: table)
    if field.isStringAsBytes {
      if case .invalid = UTF8Check(copying: content, to: copy) {
        throw self.failure("invalid UTF-8", of: field, in: table)
      }
    } else {
      copy.store(content)
    }
    return ProtobufCBinaryData(len: content.count, data: copy.assumingMemoryBound(to: UInt8.self))
  }
}

extension FieldPlace {
  /// Stores a number from its varint.
  ///
  /// - Parameter kind: The field's kind. Callers with loops compute it once.
  @inline(__always)
  func store(varint value: UInt64, as kind: FieldKind) {
    switch kind {
    case .int64, .uint64:
      self.store(value)
    case .sint64:
      self.store((value >> 1) ^ (0 &- (value & 1)))
    case .sint32:
      let low = UInt32(truncatingIfNeeded: value)
      self.store((low >> 1) ^ (0 &- (low & 1)))
    case .bool:
      self.store(value == 0 ? 0 : 1 as Int32)
    default:
      self.store(UInt32(truncatingIfNeeded: value))
    }
  }
}
