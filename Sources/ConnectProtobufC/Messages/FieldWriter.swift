internal import CProtobufC
internal import Connect
internal import NIOCore

/// Writes ``FieldValue``s into structs. All checks come before the first write.
enum FieldWriter {
  /// One level less than the limit, as the checked message will be nested in another one.
  private static let maximumDepth = DecodingLimits.defaults.maximumDepth - 1

  // MARK: Checking

  static func check(
    _ value: FieldValue,
    for field: FieldSchema,
    in message: MessageDescriptor
  ) throws(ConnectError) {
    guard field.isRepeated else {
      try self.checkOne(value, for: field, in: message)
      return
    }
    if field.isMap, let entry = field.message, case .map(let pairs) = value {
      let entryDescriptor = MessageDescriptor(graph: message.graph, schema: entry)
      guard let keyField = entry.field(number: 1), let valueField = entry.field(number: 2) else { return }
      for (key, value) in pairs {
        try self.checkOne(key, for: keyField, in: entryDescriptor)
        try self.checkOne(value, for: valueField, in: entryDescriptor)
      }
    } else if !field.isMap, case .list(let values) = value {
      for value in values { try self.checkOne(value, for: field, in: message) }
    } else {
      throw self.mismatch(value, for: field, in: message)
    }
  }

  private static func checkOne(
    _ value: FieldValue,
    for field: FieldSchema,
    in message: MessageDescriptor
  ) throws(ConnectError) {
    let fits: Bool
    switch (field.kind, value) {
    case (.bool, .bool), (.double, .double), (.bytes, .bytes): fits = true
    // The number is rounded, but must not become infinite.
    case (.float, .double(let number)): fits = Float(number).isFinite || !number.isFinite
    case (.float, .int(let number)): fits = Float(exactly: number) != nil
    case (.double, .int(let number)): fits = Double(exactly: number) != nil
    case (.int32, _), (.sint32, _), (.sfixed32, _): fits = self.integer(value, as: Int32.self) != nil
    case (.int64, _), (.sint64, _), (.sfixed64, _): fits = self.integer(value, as: Int64.self) != nil
    case (.uint32, _), (.fixed32, _): fits = self.integer(value, as: UInt32.self) != nil
    case (.uint64, _), (.fixed64, _): fits = self.integer(value, as: UInt64.self) != nil
    case (.enumeration, _): fits = self.number(value, for: field) != nil
    case (.string, .string(let text)):
      guard field.isStringAsBytes || !text.utf8.contains(0) else {
        throw .misuse("\(message.name).\(field.name): has a NUL, which a C string cannot hold")
      }
      fits = true
    case (.message, .message(let inner)):
      guard inner.descriptor.schema.descriptor == field.message?.descriptor else {
        if inner.descriptor.name == field.typeName {
          throw .misuse(
            "\(message.name).\(field.name): a \(inner.descriptor.name) of another descriptor pool"
          )
        }
        throw self.mismatch(value, for: field, in: message)
      }
      try StructCheck(maximumDepth: self.maximumDepth).check(
        inner.handle.message,
        of: inner.descriptor.schema.table
      )
      fits = true
    default: fits = false
    }
    guard fits else { throw self.mismatch(value, for: field, in: message) }
  }

  private static func mismatch(
    _ value: FieldValue,
    for field: FieldSchema,
    in message: MessageDescriptor
  ) -> ConnectError {
    .misuse("\(message.name).\(field.name) does not take \(value.kindName): \(value)")
  }

  private static func integer<I: FixedWidthInteger>(_ value: FieldValue, as type: I.Type) -> I? {
    switch value {
    case .int(let number): I(exactly: number)
    case .uint(let number): I(exactly: number)
    default: nil
    }
  }

  /// The number of an enum value, given as a number or a name.
  private static func number(_ value: FieldValue, for field: FieldSchema) -> Int32? {
    switch value {
    case .enumeration(let number): number
    case .string(let name): field.enumeration?.numbers[name]
    default: self.integer(value, as: Int32.self)
    }
  }

  // MARK: Writing

  /// Writes a value that ``check(_:_:in:)`` has accepted, into a message that nobody shares.
  static func write(_ value: FieldValue, to field: FieldSchema, of handle: MessageHandle) {
    let message = handle.message
    let arena = handle.storage.arena
    switch value {
    case .list(let values):
      let places = self.newArray(of: field, count: values.count, in: message, arena: arena)
      for (place, value) in zip(places, values) { self.store(value, at: place, in: handle.storage) }
    case .map(let pairs):
      guard let entry = field.message, let keyField = entry.field(number: 1),
        let valueField = entry.field(number: 2)
      else { return }
      let places = self.newArray(of: field, count: pairs.count, in: message, arena: arena)
      for (place, (key, value)) in zip(places, pairs) {
        let pair = handle.child(arena.newMessage(entry.descriptor))
        self.write(key, to: keyField, of: pair)
        self.write(value, to: valueField, of: pair)
        place.store(pair.message)
      }
    default:
      message.select(field)
      self.store(value, at: message.place(of: field), in: handle.storage)
    }
  }

  private static func newArray(
    of field: FieldSchema,
    count: Int,
    in message: MessagePointer,
    arena: Arena
  ) -> FieldElements {
    let array = arena.take(count * field.valueSize)
    message.setArray(array, count: count, of: field)
    return FieldElements(of: field, array: array, count: count)
  }

  private static func store(_ value: FieldValue, at place: FieldPlace, in storage: MessageStorage) {
    let field = place.field
    switch (field.kind, value) {
    case (.bool, .bool(let flag)): place.store(flag ? 1 : 0 as Int32)
    case (.float, .double(let number)): place.store(Float(number))
    case (.float, .int(let number)): place.store(Float(number))
    case (.double, .double(let number)): place.store(number)
    case (.double, .int(let number)): place.store(Double(number))
    case (.int32, _), (.sint32, _), (.sfixed32, _):
      place.store(self.integer(value, as: Int32.self) ?? 0)
    case (.int64, _), (.sint64, _), (.sfixed64, _):
      place.store(self.integer(value, as: Int64.self) ?? 0)
    case (.uint32, _), (.fixed32, _):
      place.store(self.integer(value, as: UInt32.self) ?? 0)
    case (.uint64, _), (.fixed64, _):
      place.store(self.integer(value, as: UInt64.self) ?? 0)
    case (.enumeration, _):
      place.store(self.number(value, for: field) ?? 0)
    case (.string, .string(var text)):
      text.withUTF8 { place.store(UnsafeRawBufferPointer($0), in: storage.arena) }
    case (.bytes, .bytes(let bytes)):
      bytes.withUnsafeReadableBytes { place.store($0, in: storage.arena) }
    case (.message, .message(let inner)):
      place.store(MessagePointer(storage.arena.copy(inner.handle.pointer)))
      // The combined message may be nested too deep.
      storage.isChecked = false
    default: break
    }
  }
}
