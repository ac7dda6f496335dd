internal import CProtobufC
internal import Connect
internal import NIOCore

/// Writes ``FieldValue``s into structs: first checked, then written.
enum FieldWriter {
  /// One message less than may be nested, as this one is to be put into another.
  private static let maximumDepth = DecodingLimits.defaults.maximumDepth - 1

  // MARK: Checking

  static func check(
    _ value: FieldValue,
    _ field: FieldSchema,
    in message: MessageDescriptor
  ) throws(ConnectError) {
    guard field.cardinality == .repeated else {
      try self.checkOne(value, field, message)
      return
    }
    if field.isMap, let entry = field.message, case .map(let pairs) = value {
      let entryDescriptor = MessageDescriptor(graph: message.graph, schema: entry)
      guard let keyField = entry.field(number: 1), let valueField = entry.field(number: 2) else { return }
      for (key, value) in pairs {
        try self.checkOne(key, keyField, entryDescriptor)
        try self.checkOne(value, valueField, entryDescriptor)
      }
    } else if !field.isMap, case .list(let values) = value {
      for value in values { try self.checkOne(value, field, message) }
    } else {
      throw self.mismatch(value, field, message)
    }
  }

  private static func checkOne(
    _ value: FieldValue,
    _ field: FieldSchema,
    _ message: MessageDescriptor
  ) throws(ConnectError) {
    let fits: Bool
    switch (field.kind, value) {
    case (.bool, .bool), (.double, .double), (.bytes, .bytes): fits = true
    // Rounded, but not to infinity.
    case (.float, .double(let number)): fits = Float(number).isFinite || !number.isFinite
    case (.float, .int(let number)): fits = Float(exactly: number) != nil
    case (.double, .int(let number)): fits = Double(exactly: number) != nil
    case (.int32, _), (.sint32, _), (.sfixed32, _): fits = self.integer(value, as: Int32.self) != nil
    case (.int64, _), (.sint64, _), (.sfixed64, _): fits = self.integer(value, as: Int64.self) != nil
    case (.uint32, _), (.fixed32, _): fits = self.integer(value, as: UInt32.self) != nil
    case (.uint64, _), (.fixed64, _): fits = self.integer(value, as: UInt64.self) != nil
    case (.enumeration, _): fits = self.number(value, field) != nil
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
        throw self.mismatch(value, field, message)
      }
      try StructCheck(maximumDepth: self.maximumDepth).check(
        inner.handle.pointer,
        inner.descriptor.schema.descriptor
      )
      fits = true
    default: fits = false
    }
    guard fits else { throw self.mismatch(value, field, message) }
  }

  private static func mismatch(
    _ value: FieldValue,
    _ field: FieldSchema,
    _ message: MessageDescriptor
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

  /// The number of an enum's value, which may also be given by its name.
  private static func number(_ value: FieldValue, _ field: FieldSchema) -> Int32? {
    switch value {
    case .enumeration(let number): number
    case .string(let name): field.enumeration?.numbers[name]
    default: self.integer(value, as: Int32.self)
    }
  }

  // MARK: Writing

  /// Writes what ``check(_:_:in:)`` let pass, into a message that nobody shares.
  static func write(_ value: FieldValue, _ field: FieldSchema, to handle: MessageHandle) {
    let message = handle.pointer
    let arena = handle.storage.arena
    switch value {
    case .list(let values):
      let array = self.newArray(values.count, field, message, arena)
      for (index, value) in values.enumerated() {
        self.store(value, field, at: array + index * field.valueSize, handle.storage)
      }
    case .map(let pairs):
      guard let entry = field.message, let keyField = entry.field(number: 1),
        let valueField = entry.field(number: 2)
      else { return }
      let array = self.newArray(pairs.count, field, message, arena)
      for (index, (key, value)) in pairs.enumerated() {
        let pair = handle.child(arena.newMessage(entry.descriptor))
        self.write(key, keyField, to: pair)
        self.write(value, valueField, to: pair)
        (array + index * field.valueSize).storeBytes(of: pair.pointer, as: UnsafeMutableRawPointer?.self)
      }
    default:
      field.select(in: message)
      self.store(value, field, at: message + field.offset, handle.storage)
    }
  }

  private static func newArray(
    _ count: Int,
    _ field: FieldSchema,
    _ message: UnsafeMutableRawPointer,
    _ arena: Arena
  ) -> UnsafeMutableRawPointer {
    let array = arena.take(count * field.valueSize)
    message.storeBytes(of: count, toByteOffset: field.quantifierOffset, as: Int.self)
    message.storeBytes(of: array, toByteOffset: field.offset, as: UnsafeMutableRawPointer?.self)
    return array
  }

  private static func store(
    _ value: FieldValue,
    _ field: FieldSchema,
    at place: UnsafeMutableRawPointer,
    _ storage: MessageStorage
  ) {
    switch (field.kind, value) {
    case (.bool, .bool(let flag)): place.storeBytes(of: flag ? 1 : 0, as: Int32.self)
    case (.float, .double(let number)): place.storeBytes(of: Float(number), as: Float.self)
    case (.float, .int(let number)): place.storeBytes(of: Float(number), as: Float.self)
    case (.double, .double(let number)): place.storeBytes(of: number, as: Double.self)
    case (.double, .int(let number)): place.storeBytes(of: Double(number), as: Double.self)
    case (.int32, _), (.sint32, _), (.sfixed32, _):
      place.storeBytes(of: self.integer(value, as: Int32.self) ?? 0, as: Int32.self)
    case (.int64, _), (.sint64, _), (.sfixed64, _):
      place.storeBytes(of: self.integer(value, as: Int64.self) ?? 0, as: Int64.self)
    case (.uint32, _), (.fixed32, _):
      place.storeBytes(of: self.integer(value, as: UInt32.self) ?? 0, as: UInt32.self)
    case (.uint64, _), (.fixed64, _):
      place.storeBytes(of: self.integer(value, as: UInt64.self) ?? 0, as: UInt64.self)
    case (.enumeration, _):
      place.storeBytes(of: self.number(value, field) ?? 0, as: Int32.self)
    case (.string, .string(var text)):
      text.withUTF8 { field.storeString(UnsafeRawBufferPointer($0), at: place, storage.arena) }
    case (.bytes, .bytes(let bytes)):
      let copy = bytes.withUnsafeReadableBytes { storage.arena.newBytes($0) }
      place.storeBytes(of: copy, as: ProtobufCBinaryData.self)
    case (.message, .message(let inner)):
      place.storeBytes(of: storage.arena.copy(inner.handle.pointer), as: UnsafeMutableRawPointer?.self)
      // Together they may be nested too deep.
      storage.isChecked = false
    default: break
    }
  }
}
