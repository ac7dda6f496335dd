internal import CProtobufC
internal import Connect
internal import NIOCore

/// Reads proto3's JSON straight into structs.
struct JSONDecoding {
  var reader: JSONReader
  let memory: DecodingMemory
  /// Finds the types of what is in `google.protobuf.Any`.
  let types: SchemaGraph
  let ignoresUnknownFields: Bool
  let limits: DecodingLimits

  /// The message in `text`.
  static func decode(
    _ text: UnsafeRawBufferPointer,
    _ schema: MessageSchema,
    graph: SchemaGraph,
    ignoresUnknownFields: Bool,
    limits: DecodingLimits
  ) throws(ConnectError) -> MessageHandle {
    let limit = limits.memory(forBytes: text.count)
    let capacity = min(Arena.rounded(schema.descriptor.pointee.sizeof_message) + text.count, limit)
    let arena = Arena(capacity: min(capacity, 1024 * 1024), limit: limit)
    // Checked: depth and strings are, as they are read.
    let storage = MessageStorage(arena: arena, graph: graph, isChecked: true)
    var decoding = JSONDecoding(
      reader: try JSONReader(
        UnsafeBufferPointer(start: text.baseAddress?.assumingMemoryBound(to: UInt8.self), count: text.count),
        maximumDepth: limits.maximumDepth
      ),
      memory: DecodingMemory(arena: arena),
      types: graph.typesOfAny ?? graph,
      ignoresUnknownFields: ignoresUnknownFields,
      limits: limits
    )
    let message = try decoding.memory.newMessage(schema)
    try decoding.message(message, schema, depth: 0)
    try decoding.reader.expectEnd()
    arena.limit = .max
    return MessageHandle(storage: storage, pointer: message)
  }

  func failure(_ schema: MessageSchema, _ field: FieldSchema, _ message: String) -> ConnectError {
    self.reader.failure("\(schema.name).\(field.name): \(message)")
  }

  func tooDeep(_ schema: MessageSchema) -> ConnectError {
    .undecodable(
      "JSON: \(schema.name): more than \(self.limits.maximumDepth) nested messages",
      .resourceExhausted
    )
  }

  // MARK: Messages

  /// Reads a value into an empty message.
  mutating func message(
    _ message: UnsafeMutableRawPointer,
    _ schema: MessageSchema,
    depth: Int
  ) throws(ConnectError) {
    guard depth < self.limits.maximumDepth else {
      throw self.tooDeep(schema)
    }
    if let type = schema.wellKnown {
      try self.wellKnown(message, schema, type, depth: depth)
    } else {
      try self.fields(message, schema, depth: depth)
    }
  }

  /// - Parameter isInAny: Passes over the member `@type`.
  mutating func fields(
    _ message: UnsafeMutableRawPointer,
    _ schema: MessageSchema,
    depth: Int,
    isInAny: Bool = false
  ) throws(ConnectError) {
    try self.reader.expect("{")
    if self.reader.take("}") { return }
    var seen = FieldSet()
    var next = 0
    repeat {
      let field = try self.reader.withString { name throws(ConnectError) -> (FieldSchema, Int)? in
        if let found = Self.find(name, schema, from: next) { return found }
        if isInAny, name.elementsEqual("@type".utf8) { return nil }
        guard self.ignoresUnknownFields else {
          let name = String(decoding: name, as: UTF8.self)
          throw .undecodable("JSON: \(schema.name) has no field '\(name)'")
        }
        return nil
      }
      try self.reader.expect(":")
      guard let (field, index) = field else {
        try self.reader.skipValue()
        continue
      }
      guard seen.insert(index) else { throw self.failure(schema, field, "is there twice") }
      next = index + 1
      try self.field(field, message, schema, depth: depth)
    } while self.reader.take(",")
    try self.reader.expect("}")
  }

  /// The field of a name, and its index; members mostly come in the order of the fields.
  private static func find(
    _ name: UnsafeRawBufferPointer,
    _ schema: MessageSchema,
    from next: Int
  ) -> (FieldSchema, Int)? {
    let fields = schema.fields
    for index in next..<max(next, min(next + 4, fields.count)) {
      let candidate = fields[index].jsonNameBytes
      guard candidate.count == name.count else { continue }
      if candidate.withUnsafeBytes({ $0.elementsEqual(name) }) { return (fields[index], index) }
    }
    return schema.index(jsonName: String(decoding: name, as: UTF8.self)).map { (fields[$0], $0) }
  }

  private mutating func field(
    _ field: FieldSchema,
    _ message: UnsafeMutableRawPointer,
    _ schema: MessageSchema,
    depth: Int
  ) throws(ConnectError) {
    let takesNull = field.cardinality != .repeated && Self.takesNull(field)
    if !takesNull, self.reader.takeWord("null") { return }
    if field.isMap {
      try self.map(field, message, schema, depth: depth)
    } else if field.cardinality == .repeated {
      try self.list(field, message, schema, depth: depth)
    } else {
      if field.isOneofMember, message.load(fromByteOffset: field.quantifierOffset, as: UInt32.self) != 0 {
        throw self.failure(schema, field, "another field of its oneof is there as well")
      }
      field.select(in: message)
      guard try self.value(at: message + field.offset, field, schema, depth: depth) else {
        field.clear(in: message)
        return
      }
    }
  }

  /// Whether null is a value of the field, and does not mean that it is not there.
  private static func takesNull(_ field: FieldSchema) -> Bool {
    field.message?.wellKnown == .value || field.enumeration?.isNullValue == true
  }

  // MARK: Repeated fields

  mutating func list(
    _ field: FieldSchema,
    _ message: UnsafeMutableRawPointer,
    _ schema: MessageSchema,
    depth: Int
  ) throws(ConnectError) {
    try self.reader.expect("[")
    if self.reader.take("]") { return }
    var array = GrowingArray(field)
    repeat {
      let place = try array.next(self.memory)
      if try self.value(at: place, field, schema, depth: depth) { array.keep() }
    } while self.reader.take(",")
    try self.reader.expect("]")
    array.store(in: message)
  }

  mutating func map(
    _ field: FieldSchema,
    _ message: UnsafeMutableRawPointer,
    _ schema: MessageSchema,
    depth: Int
  ) throws(ConnectError) {
    try self.reader.expect("{")
    if self.reader.take("}") { return }
    guard field.isMap, let entry = field.message, let key = entry.field(number: 1),
      let value = entry.field(number: 2)
    else { throw self.failure(schema, field, "its entries have no key and value") }
    guard depth + 1 < self.limits.maximumDepth
    else { throw self.tooDeep(schema) }
    var array = GrowingArray(field)
    repeat {
      let place = try array.next(self.memory)
      let pair = try self.memory.newMessage(entry)
      key.select(in: pair)
      try self.mapKey(at: pair + key.offset, key, entry)
      try self.reader.expect(":")
      value.select(in: pair)
      if try self.value(at: pair + value.offset, value, entry, depth: depth + 1) {
        place.storeBytes(of: pair, as: UnsafeMutableRawPointer?.self)
        array.keep()
      }
    } while self.reader.take(",")
    try self.reader.expect("}")
    array.store(in: message)
  }

  private mutating func mapKey(
    at place: UnsafeMutableRawPointer,
    _ key: FieldSchema,
    _ entry: MessageSchema
  ) throws(ConnectError) {
    if key.kind == .string {
      try self.text(at: place, key, entry)
      return
    }
    let fits = try self.reader.withString { text throws(ConnectError) in
      key.kind == .bool ? Self.storeBool(text, at: place) : Self.storeInteger(text, key.kind, at: place)
    }
    guard fits else { throw self.failure(entry, key, "a map's key that is not of its type") }
  }

  private static func storeBool(_ text: UnsafeRawBufferPointer, at place: UnsafeMutableRawPointer) -> Bool {
    let isTrue = text.elementsEqual("true".utf8)
    place.storeBytes(of: isTrue ? 1 : 0, as: Int32.self)
    return isTrue || text.elementsEqual("false".utf8)
  }
}
