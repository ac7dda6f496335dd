internal import CProtobufC
internal import Connect
internal import NIOCore

/// Reads proto3's JSON straight into structs.
struct JSONDecoding {
  var reader: JSONReader
  let memory: DecodingMemory
  /// Finds the types of messages in `google.protobuf.Any`.
  let types: SchemaGraph
  let ignoresUnknownFields: Bool
  let limits: DecodingLimits

  /// The message in `text`.
  static func decode(
    _ text: UnsafeRawBufferPointer,
    of schema: MessageSchema,
    graph: SchemaGraph,
    ignoresUnknownFields: Bool,
    limits: DecodingLimits
  ) throws(ConnectError) -> MessageHandle {
    let limit = limits.memory(forBytes: text.count)
    let capacity = min(Arena.rounded(schema.table.size) + text.count, limit)
    let arena = Arena(capacity: min(capacity, 1024 * 1024), limit: limit)
    // Decoding checks depth and strings, so the storage counts as checked.
    let storage = MessageStorage(arena: arena, graph: graph, isChecked: true)
    var decoding = JSONDecoding(
      reader: try JSONReader(text, maximumDepth: limits.maximumDepth),
      memory: DecodingMemory(arena: arena),
      types: graph.typesOfAny ?? graph,
      ignoresUnknownFields: ignoresUnknownFields,
      limits: limits
    )
    let message = try decoding.memory.newMessage(of: schema)
    try decoding.readMessage(into: message, of: schema, depth: 0)
    try decoding.reader.expectEnd()
    arena.limit = .max
    return MessageHandle(storage: storage, pointer: message.address)
  }

  func failure(_ problem: String, of field: FieldSchema, in schema: MessageSchema) -> ConnectError {
    self.reader.failure("\(schema.name).\(field.name): \(problem)")
  }

  func tooDeep(in schema: MessageSchema) -> ConnectError {
    .undecodable(
      "JSON: \(schema.name): more than \(self.limits.maximumDepth) nested messages",
      code: .resourceExhausted
    )
  }

  // MARK: Messages

  /// Reads a value into an empty message.
  mutating func readMessage(
    into message: MessagePointer,
    of schema: MessageSchema,
    depth: Int
  ) throws(ConnectError) {
    guard depth < self.limits.maximumDepth else {
      throw self.tooDeep(in: schema)
    }
    if let type = schema.wellKnown {
      try self.readWellKnown(type, into: message, of: schema, depth: depth)
    } else {
      try self.readFields(into: message, of: schema, depth: depth)
    }
  }

  /// Reads the members of an object.
  ///
  /// - Parameter isInAny: Whether to skip the member `@type`.
  mutating func readFields(
    into message: MessagePointer,
    of schema: MessageSchema,
    depth: Int,
    isInAny: Bool = false
  ) throws(ConnectError) {
    try self.reader.expect("{")
    if self.reader.take("}") { return }
    var seen = FieldSet()
    var next = 0
    repeat {
      let found = try self.reader.withString { name throws(ConnectError) -> Int? in
        if let found = Self.indexOfField(name, in: schema, from: next) { return found }
        if isInAny, name.elementsEqual("@type".utf8) { return nil }
        guard self.ignoresUnknownFields else {
          let name = String(decoding: name, as: UTF8.self)
          throw .undecodable("JSON: \(schema.name) has no field '\(name)'")
        }
        return nil
      }
      try self.reader.expect(":")
      guard let index = found else {
        try self.reader.skipValue()
        continue
      }
      let field = schema.fields[index]
      guard seen.insert(index) else { throw self.failure("is there twice", of: field, in: schema) }
      next = index + 1
      try self.readField(field, into: message, of: schema, depth: depth)
    } while self.reader.take(",")
    try self.reader.expect("}")
  }

  /// The index of the field with a name; members mostly come in the order of the fields.
  private static func indexOfField(
    _ name: UnsafeRawBufferPointer,
    in schema: MessageSchema,
    from next: Int
  ) -> Int? {
    let names = schema.jsonNames
    for index in next..<max(next, min(next + 4, names.count)) {
      let candidate = names[index].bytes
      guard candidate.count == name.count else { continue }
      if candidate.withUnsafeBytes({ $0.elementsEqual(name) }) { return index }
    }
    return schema.index(jsonName: String(decoding: name, as: UTF8.self))
  }

  private mutating func readField(
    _ field: FieldSchema,
    into message: MessagePointer,
    of schema: MessageSchema,
    depth: Int
  ) throws(ConnectError) {
    if field.isRepeated || !Self.takesNull(field), self.reader.takeWord("null") { return }
    if field.isMap {
      try self.readMap(field, into: message, of: schema, depth: depth)
    } else if field.isRepeated {
      try self.readList(field, into: message, of: schema, depth: depth)
    } else {
      if field.isOneofMember, message.oneofCase(of: field) != 0 {
        throw self.failure("another field of its oneof is there as well", of: field, in: schema)
      }
      message.select(field)
      guard try self.readValue(into: message.place(of: field), of: schema, depth: depth) else {
        message.clear(field)
        return
      }
    }
  }

  /// Whether null is a value of the field, instead of meaning that the field is absent.
  private static func takesNull(_ field: FieldSchema) -> Bool {
    field.message?.wellKnown == .value || field.enumeration?.isNullValue == true
  }

  // MARK: Repeated fields

  mutating func readList(
    _ field: FieldSchema,
    into message: MessagePointer,
    of schema: MessageSchema,
    depth: Int
  ) throws(ConnectError) {
    try self.reader.expect("[")
    if self.reader.take("]") { return }
    var array = GrowingArray(of: field)
    repeat {
      let place = try array.next(in: self.memory)
      if try self.readValue(into: place, of: schema, depth: depth) { array.keep() }
    } while self.reader.take(",")
    try self.reader.expect("]")
    array.store(in: message)
  }

  mutating func readMap(
    _ field: FieldSchema,
    into message: MessagePointer,
    of schema: MessageSchema,
    depth: Int
  ) throws(ConnectError) {
    try self.reader.expect("{")
    if self.reader.take("}") { return }
    guard field.isMap, let entry = field.message, let key = entry.field(number: 1),
      let value = entry.field(number: 2)
    else { throw self.failure("its entries have no key and value", of: field, in: schema) }
    guard depth + 1 < self.limits.maximumDepth else { throw self.tooDeep(in: schema) }
    var array = GrowingArray(of: field)
    repeat {
      let place = try array.next(in: self.memory)
      let pair = try self.memory.newMessage(of: entry)
      pair.select(key)
      try self.readMapKey(into: pair.place(of: key), of: entry)
      try self.reader.expect(":")
      pair.select(value)
      if try self.readValue(into: pair.place(of: value), of: entry, depth: depth + 1) {
        place.store(pair)
        array.keep()
      }
    } while self.reader.take(",")
    try self.reader.expect("}")
    array.store(in: message)
  }

  private mutating func readMapKey(
    into place: FieldPlace,
    of entry: MessageSchema
  ) throws(ConnectError) {
    let key = place.field
    if key.kind == .string {
      try self.readString(into: place, of: entry)
      return
    }
    let fits = try self.reader.withString { text throws(ConnectError) in
      key.kind == .bool ? Self.storeBool(text, in: place) : Self.storeInteger(text, in: place)
    }
    guard fits else { throw self.failure("a map's key that is not of its type", of: key, in: entry) }
  }

  private static func storeBool(_ text: UnsafeRawBufferPointer, in place: FieldPlace) -> Bool {
    let isTrue = text.elementsEqual("true".utf8)
    place.store(isTrue ? 1 : 0 as Int32)
    return isTrue || text.elementsEqual("false".utf8)
  }
}
