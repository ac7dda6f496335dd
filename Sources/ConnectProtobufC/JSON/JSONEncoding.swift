internal import CProtobufC
internal import Connect
internal import NIOCore

/// proto3's JSON of a message in memory.
struct JSONEncoding: ~Copyable {
  let options: JSONCodingOptions
  /// Finds the types of messages in `google.protobuf.Any`.
  let types: SchemaGraph
  /// Limits for decoding the content of a `google.protobuf.Any`.
  let limits: DecodingLimits
  /// Memory left for nested messages in `google.protobuf.Any`, out of the outermost one's memory; nil outside of `Any`.
  var memoryOfAny: Int?
  /// Whether a `google.protobuf.Any` that does not decode is written with its bytes in base64. Else it is an error.
  var keepsUndecodedAny = false
  /// Whether fields without presence are written if they are zero or empty, too.
  var emitsDefaults = false
  /// The URLs of the unknown types that were written with their bytes.
  var unknownTypeURLs: Set<String> = []
  var out = JSONWriter()
  private var depth = 0

  init(options: JSONCodingOptions, limits: DecodingLimits, graph: SchemaGraph) {
    self.options = options
    self.limits = limits
    self.types = graph.typesOfAny ?? graph
  }

  mutating func write(_ message: MessagePointer, of schema: MessageSchema) throws(ConnectError) {
    // The content of a `google.protobuf.Any` counts as a level, too.
    guard self.depth < self.limits.maximumDepth else {
      throw .unencodable("\(schema.name): more than \(self.limits.maximumDepth) nested messages")
    }
    self.depth += 1
    defer { self.depth -= 1 }
    if let type = schema.wellKnown {
      try self.writeWellKnown(message, of: schema, as: type)
      return
    }
    self.out.byte(UInt8(ascii: "{"))
    try self.writeFields(in: message, of: schema, isFirst: true)
    self.out.byte(UInt8(ascii: "}"))
  }

  /// The members of a message's object.
  mutating func writeFields(
    in message: MessagePointer,
    of schema: MessageSchema,
    isFirst: Bool
  ) throws(ConnectError) {
    var isFirst = isFirst
    let fields = schema.fields
    let names = schema.jsonNames
    let usesProtoNames = self.options.preserveProtoFieldNames
    for index in fields.indices {
      let field = fields[index]
      guard message.has(field) || self.emitsDefaults && field.isImplicit else { continue }
      if !isFirst { self.out.byte(UInt8(ascii: ",")) }
      isFirst = false
      self.out.raw(usesProtoNames ? names[index].originalKey : names[index].key)
      if field.isMap {
        try self.writeMap(field, in: message)
      } else if field.isRepeated {
        try self.writeList(field, in: message)
      } else {
        try self.writeValue(at: message.place(of: field))
      }
    }
  }

  mutating func writeList(_ field: FieldSchema, in message: MessagePointer) throws(ConnectError) {
    self.out.byte(UInt8(ascii: "["))
    for (index, place) in message.elements(of: field).enumerated() {
      if index > 0 { self.out.byte(UInt8(ascii: ",")) }
      try self.writeValue(at: place)
    }
    self.out.byte(UInt8(ascii: "]"))
  }

  mutating func writeMap(_ field: FieldSchema, in message: MessagePointer) throws(ConnectError) {
    self.out.byte(UInt8(ascii: "{"))
    guard field.isMap, let entry = field.message, let key = entry.field(number: 1),
      let value = entry.field(number: 2)
    else {
      throw .unencodable("\(field.name): its entries have no key and value")
    }
    for (index, pair) in self.entries(of: field, key: key, in: message).enumerated() {
      if index > 0 { self.out.byte(UInt8(ascii: ",")) }
      self.writeMapKey(at: pair.place(of: key))
      self.out.byte(UInt8(ascii: ":"))
      let place = pair.place(of: value)
      if value.kind == .message, place.message == nil, let inner = value.message {
        // An entry without a value: the empty message.
        let empty = MessageHandle(inner.descriptor, graph: self.types)
        try withExtendedLifetime(empty.storage) { () throws(ConnectError) in
          try self.write(empty.message, of: inner)
        }
      } else {
        try self.writeValue(at: place)
      }
    }
    self.out.byte(UInt8(ascii: "}"))
  }

  /// The effective entries: the last entry of each key.
  private func entries(
    of field: FieldSchema,
    key: FieldSchema,
    in message: MessagePointer
  ) -> [MessagePointer] {
    MapOrder.lastOfEachKey(
      message.elements(of: field).messages,
      key: key,
      sorted: self.options.deterministic
    )
  }

  private mutating func writeMapKey(at place: FieldPlace) {
    switch place.field.kind {
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
      self.out.string(place.bytes)
    }
  }

  mutating func writeValue(at place: FieldPlace) throws(ConnectError) {
    let field = place.field
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
      self.out.string(place.bytes)
    case .bytes:
      self.out.base64(place.bytes)
    case .enumeration:
      self.writeEnumeration(place.load(as: Int32.self), of: field)
    case .message:
      guard let schema = field.message, let message = place.message else {
        throw .unencodable("\(field.name): a null pointer")
      }
      try self.write(message, of: schema)
    }
  }

  private mutating func writeEnumeration(_ number: Int32, of field: FieldSchema) {
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
