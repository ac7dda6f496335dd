internal import CProtobufC
internal import Connect
internal import NIOCore

/// proto3's JSON of a message in memory.
struct JSONEncoding: ~Copyable {
  let options: JSONCodingOptions
  /// Finds the types of what is in `google.protobuf.Any`.
  let types: SchemaGraph
  /// On what is in `google.protobuf.Any`, which has to be decoded.
  let limits: DecodingLimits
  /// What is left, for a `google.protobuf.Any` in another one, of the outermost one's memory; nil outside of them.
  var memoryOfAny: Int?
  var out = JSONWriter()
  private var depth = 0

  init(options: JSONCodingOptions, limits: DecodingLimits, graph: SchemaGraph) {
    self.options = options
    self.limits = limits
    self.types = graph.typesOfAny ?? graph
  }

  mutating func message(_ message: UnsafeRawPointer, _ schema: MessageSchema) throws(ConnectError) {
    // What is in a `google.protobuf.Any` counts as well.
    guard self.depth < self.limits.maximumDepth else {
      throw .unencodable("\(schema.name): more than \(self.limits.maximumDepth) nested messages")
    }
    self.depth += 1
    defer { self.depth -= 1 }
    if let type = schema.wellKnown {
      try self.wellKnown(message, schema, type)
      return
    }
    self.out.byte(UInt8(ascii: "{"))
    try self.fields(message, schema, isFirst: true)
    self.out.byte(UInt8(ascii: "}"))
  }

  /// The members of a message's object.
  mutating func fields(
    _ message: UnsafeRawPointer,
    _ schema: MessageSchema,
    isFirst: Bool
  ) throws(ConnectError) {
    var isFirst = isFirst
    let slots = schema.slots
    for index in slots.indices where slots[index].isPresent(in: message) {
      let field = schema.fields[index]
      if !isFirst { self.out.byte(UInt8(ascii: ",")) }
      isFirst = false
      self.out.raw(self.options.preserveProtoFieldNames ? field.originalJSONKey : field.jsonKey)
      if field.isMap {
        try self.map(message, field)
      } else if field.cardinality == .repeated {
        try self.list(message, field)
      } else {
        try self.value(at: message + field.offset, field)
      }
    }
  }

  mutating func list(_ message: UnsafeRawPointer, _ field: FieldSchema) throws(ConnectError) {
    self.out.byte(UInt8(ascii: "["))
    for index in 0..<field.count(in: message) {
      guard let place = field.element(index, in: message) else { break }
      if index > 0 { self.out.byte(UInt8(ascii: ",")) }
      try self.value(at: place, field)
    }
    self.out.byte(UInt8(ascii: "]"))
  }

  mutating func map(_ message: UnsafeRawPointer, _ field: FieldSchema) throws(ConnectError) {
    self.out.byte(UInt8(ascii: "{"))
    guard field.isMap, let entry = field.message, let key = entry.field(number: 1),
      let value = entry.field(number: 2)
    else {
      throw .unencodable("\(field.name): its entries have no key and value")
    }
    for (index, pair) in self.entries(message, field, key).enumerated() {
      if index > 0 { self.out.byte(UInt8(ascii: ",")) }
      self.mapKey(at: pair + key.offset, key)
      self.out.byte(UInt8(ascii: ":"))
      if value.kind == .message, FieldSchema.message(at: pair + value.offset) == nil,
        let inner = value.message
      {
        // An entry without a value: the empty message.
        let empty = MessageHandle(inner.descriptor, graph: self.types)
        try withExtendedLifetime(empty.storage) { () throws(ConnectError) in
          try self.message(empty.pointer, inner)
        }
      } else {
        try self.value(at: pair + value.offset, value)
      }
    }
    self.out.byte(UInt8(ascii: "}"))
  }

  /// The entries that count: the last one of each key.
  private func entries(
    _ message: UnsafeRawPointer,
    _ field: FieldSchema,
    _ key: FieldSchema
  ) -> [UnsafeMutableRawPointer] {
    let count = field.count(in: message)
    let pairs = (0..<count).compactMap { index in
      field.element(index, in: message).flatMap(FieldSchema.message(at:))
    }
    return MapOrder.lastOfEachKey(pairs, key, sorted: self.options.deterministic)
  }

  private mutating func mapKey(at place: UnsafeRawPointer, _ key: FieldSchema) {
    switch key.kind {
    case .bool:
      self.out.raw(place.load(as: Int32.self) != 0 ? "\"true\"" : "\"false\"")
    case .int32, .sint32, .sfixed32:
      self.out.quotedSigned(Int64(place.load(as: Int32.self)))
    case .int64, .sint64, .sfixed64:
      self.out.quotedSigned(place.load(as: Int64.self))
    case .uint32, .fixed32:
      self.out.quotedUnsigned(UInt64(place.load(as: UInt32.self)))
    case .uint64, .fixed64:
      self.out.quotedUnsigned(place.load(as: UInt64.self))
    default:
      self.out.string(key.bytes(at: place))
    }
  }

  mutating func value(at place: UnsafeRawPointer, _ field: FieldSchema) throws(ConnectError) {
    switch field.kind {
    case .bool:
      self.out.raw(place.load(as: Int32.self) != 0 ? "true" : "false")
    case .int32, .sint32, .sfixed32:
      self.out.signed(Int64(place.load(as: Int32.self)))
    case .uint32, .fixed32:
      self.out.unsigned(UInt64(place.load(as: UInt32.self)))
    case .int64, .sint64, .sfixed64:
      self.out.quotedSigned(place.load(as: Int64.self))
    case .uint64, .fixed64:
      self.out.quotedUnsigned(place.load(as: UInt64.self))
    case .float:
      self.out.float(place.load(as: Float.self))
    case .double:
      self.out.double(place.load(as: Double.self))
    case .string:
      self.out.string(field.bytes(at: place))
    case .bytes:
      self.out.base64(field.bytes(at: place))
    case .enumeration:
      self.enumeration(place.load(as: Int32.self), field)
    case .message:
      guard let schema = field.message, let message = FieldSchema.message(at: place) else {
        throw .unencodable("\(field.name): a null pointer")
      }
      try self.message(message, schema)
    }
  }

  private mutating func enumeration(_ number: Int32, _ field: FieldSchema) {
    guard let type = field.enumeration else {
      self.out.signed(Int64(number))
      return
    }
    if type.isNullValue {
      self.out.raw("null")
    } else if !self.options.alwaysPrintEnumsAsInts, let name = type.names[number] {
      self.out.string(name)
    } else {
      self.out.signed(Int64(number))
    }
  }
}
