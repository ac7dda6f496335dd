internal import CProtobufC
internal import Connect
internal import NIOCore

extension JSONDecoding {
  /// Reads one value.
  ///
  /// - Returns: False if the value is an unknown enum name, and unknown fields are ignored.
  mutating func readValue(
    into place: FieldPlace,
    of schema: MessageSchema,
    depth: Int
  ) throws(ConnectError) -> Bool {
    let field = place.field
    switch field.kind {
    case .bool:
      let isTrue = self.reader.takeWord("true")
      guard isTrue || self.reader.takeWord("false") else {
        throw self.failure("true or false expected", of: field, in: schema)
      }
      place.store(isTrue ? 1 : 0 as Int32)
    case .int32, .sint32, .sfixed32, .int64, .sint64, .sfixed64, .uint32, .fixed32, .uint64, .fixed64:
      let fits = try self.withNumberText { text throws(ConnectError) in
        Self.storeInteger(text, in: place)
      }
      guard fits else { throw self.failure("an integer of its range expected", of: field, in: schema) }
    case .float:
      place.store(try self.floatingPoint(Float.self, of: field, in: schema))
    case .double:
      place.store(try self.floatingPoint(Double.self, of: field, in: schema))
    case .string:
      try self.readString(into: place, of: schema)
    case .bytes:
      let bytes = try self.reader.withString { text throws(ConnectError) in Base64.decode(text) }
      guard let bytes else { throw self.failure("base64 expected", of: field, in: schema) }
      try self.memory.store(bytes, in: place)
    case .enumeration:
      return try self.readEnumeration(into: place, of: schema)
    case .message:
      guard let inner = field.message else { throw self.failure("of an unknown type", of: field, in: schema) }
      if self.reader.peek() == UInt8(ascii: "n"), inner.wellKnown != .value {
        throw self.failure("null in a list or a map", of: field, in: schema)
      }
      let message = try self.memory.newMessage(of: inner)
      try self.readMessage(into: message, of: inner, depth: depth + 1)
      place.store(message)
    }
    return true
  }

  /// A string.
  mutating func readString(into place: FieldPlace, of schema: MessageSchema) throws(ConnectError) {
    let field = place.field
    let memory = self.memory
    let fits = try self.reader.withString { text throws(ConnectError) in
      guard field.isStringAsBytes || !text.contains(0) else { return false }
      try memory.store(text, in: place)
      return true
    }
    guard fits else { throw self.failure("has a NUL, which a C string cannot hold", of: field, in: schema) }
  }

  // MARK: Numbers

  /// A number, or a string that contains a number.
  private mutating func withNumberText<Result>(
    _ body: (UnsafeRawBufferPointer) throws(ConnectError) -> Result
  ) throws(ConnectError) -> Result {
    if self.reader.peek() == UInt8(ascii: "\"") { return try self.reader.withString(body) }
    return try body(try self.reader.number())
  }

  /// Whether `text` is an integer in the field's range; stores the integer.
  static func storeInteger(_ text: UnsafeRawBufferPointer, in place: FieldPlace) -> Bool {
    func store<I: FixedWidthInteger & BitwiseCopyable>(_ value: I?) -> Bool {
      guard let value else { return false }
      place.store(value)
      return true
    }
    return switch place.field.kind {
    case .int32, .sint32, .sfixed32: store(JSONNumber.integer(text, as: Int32.self))
    case .int64, .sint64, .sfixed64: store(JSONNumber.integer(text, as: Int64.self))
    case .uint32, .fixed32: store(JSONNumber.integer(text, as: UInt32.self))
    case .uint64, .fixed64: store(JSONNumber.integer(text, as: UInt64.self))
    default: false
    }
  }

  private mutating func floatingPoint<F: BinaryFloatingPoint & LosslessStringConvertible>(
    _ type: F.Type,
    of field: FieldSchema,
    in schema: MessageSchema
  ) throws(ConnectError) -> F {
    let value = try self.withNumberText { text throws(ConnectError) -> F? in
      if let value = JSONNumber.floatingPoint(text, as: F.self) { return value }
      if text.elementsEqual("NaN".utf8) { return .nan }
      if text.elementsEqual("Infinity".utf8) { return .infinity }
      if text.elementsEqual("-Infinity".utf8) { return -.infinity }
      return nil
    }
    guard let value else { throw self.failure("a number of its range expected", of: field, in: schema) }
    return value
  }

  private mutating func readEnumeration(
    into place: FieldPlace,
    of schema: MessageSchema
  ) throws(ConnectError) -> Bool {
    let field = place.field
    if field.enumeration?.isNullValue == true, self.reader.takeWord("null") {
      place.store(0 as Int32)
      return true
    }
    if self.reader.peek() == UInt8(ascii: "\"") {
      let name = try self.reader.string()
      guard let number = field.enumeration?.numbers[name] else {
        if self.ignoresUnknownFields { return false }
        throw self.failure("the enum has no '\(name)'", of: field, in: schema)
      }
      place.store(number)
      return true
    }
    guard let number = JSONNumber.integer(try self.reader.number(), as: Int32.self) else {
      throw self.failure("an enum's name or number expected", of: field, in: schema)
    }
    place.store(number)
    return true
  }
}
