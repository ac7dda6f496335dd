internal import CProtobufC
internal import Connect
internal import NIOCore

extension JSONDecoding {
  /// Reads one value.
  ///
  /// - Returns: False if it is an enum's name that is not known, and unknown fields are ignored.
  mutating func value(
    at place: UnsafeMutableRawPointer,
    _ field: FieldSchema,
    _ schema: MessageSchema,
    depth: Int
  ) throws(ConnectError) -> Bool {
    switch field.kind {
    case .bool:
      let isTrue = self.reader.takeWord("true")
      guard isTrue || self.reader.takeWord("false") else {
        throw self.failure(schema, field, "true or false expected")
      }
      place.storeBytes(of: isTrue ? 1 : 0, as: Int32.self)
    case .int32, .sint32, .sfixed32, .int64, .sint64, .sfixed64, .uint32, .fixed32, .uint64, .fixed64:
      let fits = try self.withNumberText { text throws(ConnectError) in
        Self.storeInteger(text, field.kind, at: place)
      }
      guard fits else { throw self.failure(schema, field, "an integer of its range expected") }
    case .float:
      place.storeBytes(of: try self.floatingPoint(field, schema, as: Float.self), as: Float.self)
    case .double:
      place.storeBytes(of: try self.floatingPoint(field, schema, as: Double.self), as: Double.self)
    case .string:
      try self.text(at: place, field, schema)
    case .bytes:
      let bytes = try self.reader.withString { text throws(ConnectError) in Base64.decode(text) }
      guard let bytes else { throw self.failure(schema, field, "base64 expected") }
      try self.memory.storeBytes(bytes, at: place)
    case .enumeration:
      return try self.enumeration(at: place, field, schema)
    case .message:
      guard let inner = field.message else { throw self.failure(schema, field, "of an unknown type") }
      if self.reader.peek() == UInt8(ascii: "n"), inner.wellKnown != .value {
        throw self.failure(schema, field, "null in a list or a map")
      }
      let message = try self.memory.newMessage(inner)
      try self.message(message, inner, depth: depth + 1)
      place.storeBytes(of: message, as: UnsafeMutableRawPointer?.self)
    }
    return true
  }

  /// A string.
  mutating func text(
    at place: UnsafeMutableRawPointer,
    _ field: FieldSchema,
    _ schema: MessageSchema
  ) throws(ConnectError) {
    let memory = self.memory
    let fits = try self.reader.withString { text throws(ConnectError) in
      guard field.isStringAsBytes || !text.contains(0) else { return false }
      try memory.storeString(text, field, at: place)
      return true
    }
    guard fits else { throw self.failure(schema, field, "has a NUL, which a C string cannot hold") }
  }

  // MARK: Numbers

  /// A number, or a string with one.
  private mutating func withNumberText<Result>(
    _ body: (UnsafeRawBufferPointer) throws(ConnectError) -> Result
  ) throws(ConnectError) -> Result {
    if self.reader.peek() == UInt8(ascii: "\"") { return try self.reader.withString(body) }
    return try body(try self.reader.number())
  }

  static func storeInteger(
    _ text: UnsafeRawBufferPointer,
    _ kind: FieldKind,
    at place: UnsafeMutableRawPointer
  ) -> Bool {
    func store<I: FixedWidthInteger & BitwiseCopyable>(_ value: I?) -> Bool {
      guard let value else { return false }
      place.storeBytes(of: value, as: I.self)
      return true
    }
    return switch kind {
    case .int32, .sint32, .sfixed32: store(JSONNumber.integer(text, as: Int32.self))
    case .int64, .sint64, .sfixed64: store(JSONNumber.integer(text, as: Int64.self))
    case .uint32, .fixed32: store(JSONNumber.integer(text, as: UInt32.self))
    case .uint64, .fixed64: store(JSONNumber.integer(text, as: UInt64.self))
    default: false
    }
  }

  private mutating func floatingPoint<F: BinaryFloatingPoint & LosslessStringConvertible>(
    _ field: FieldSchema,
    _ schema: MessageSchema,
    as type: F.Type
  ) throws(ConnectError) -> F {
    let value = try self.withNumberText { text throws(ConnectError) -> F? in
      if let value = JSONNumber.floatingPoint(text, as: F.self) { return value }
      if text.elementsEqual("NaN".utf8) { return .nan }
      if text.elementsEqual("Infinity".utf8) { return .infinity }
      if text.elementsEqual("-Infinity".utf8) { return -.infinity }
      return nil
    }
    guard let value else { throw self.failure(schema, field, "a number of its range expected") }
    return value
  }

  private mutating func enumeration(
    at place: UnsafeMutableRawPointer,
    _ field: FieldSchema,
    _ schema: MessageSchema
  ) throws(ConnectError) -> Bool {
    if field.enumeration?.isNullValue == true, self.reader.takeWord("null") {
      place.storeBytes(of: 0, as: Int32.self)
      return true
    }
    if self.reader.peek() == UInt8(ascii: "\"") {
      let name = try self.reader.string()
      guard let number = field.enumeration?.numbers[name] else {
        if self.ignoresUnknownFields { return false }
        throw self.failure(schema, field, "the enum has no '\(name)'")
      }
      place.storeBytes(of: number, as: Int32.self)
      return true
    }
    guard let number = JSONNumber.integer(try self.reader.number(), as: Int32.self) else {
      throw self.failure(schema, field, "an enum's name or number expected")
    }
    place.storeBytes(of: number, as: Int32.self)
    return true
  }
}
