internal import Connect

extension JSONDecoding {
  /// - Parameter schema: The schema of `type`. ``MessageSchema`` has checked its fields.
  mutating func readWellKnown(
    _ type: WellKnownType,
    into message: MessagePointer,
    of schema: MessageSchema,
    depth: Int
  ) throws(ConnectError) {
    switch type {
    case .any:
      try self.readAny(into: message, of: schema, depth: depth)
    case .timestamp:
      let time = try self.reader.withString { text throws(ConnectError) in ProtobufTime(timestamp: text) }
      guard let time else { throw self.reader.failure("\(schema.name): an RFC 3339 time expected") }
      time.store(in: message, of: schema)
    case .duration:
      let time = try self.reader.withString { text throws(ConnectError) in ProtobufTime(duration: text) }
      guard let time else { throw self.reader.failure("\(schema.name): seconds with an 's' expected") }
      time.store(in: message, of: schema)
    case .fieldMask:
      try self.readFieldMask(into: message, of: schema)
    case .structure:
      try self.readMap(schema.fields[0], into: message, of: schema, depth: depth)
    case .listValue:
      try self.readList(schema.fields[0], into: message, of: schema, depth: depth)
    case .value:
      try self.readDynamicValue(into: message, of: schema, depth: depth)
    case .doubleValue, .floatValue, .int64Value, .uint64Value, .int32Value, .uint32Value, .boolValue,
      .stringValue,
      .bytesValue:
      _ = try self.readValue(into: message.place(of: schema.fields[0]), of: schema, depth: depth)
    }
  }

  /// `google.protobuf.Value`: any JSON value.
  private mutating func readDynamicValue(
    into message: MessagePointer,
    of schema: MessageSchema,
    depth: Int
  ) throws(ConnectError) {
    let number: UInt32
    switch self.reader.peek() {
    case UInt8(ascii: "n"): number = 1
    case UInt8(ascii: "\""): number = 3
    case UInt8(ascii: "{"): number = 5
    case UInt8(ascii: "t"), UInt8(ascii: "f"): number = 4
    case UInt8(ascii: "["): number = 6
    default: number = 2
    }
    guard let field = schema.field(number: number) else { return }
    message.select(field)
    if number == 1 {
      guard self.reader.takeWord("null") else { throw self.reader.failure("a value expected") }
      message.place(of: field).store(0 as Int32)
    } else {
      _ = try self.readValue(into: message.place(of: field), of: schema, depth: depth)
    }
  }

  private mutating func readFieldMask(
    into message: MessagePointer,
    of schema: MessageSchema
  ) throws(ConnectError) {
    let text = try self.reader.string()
    if text.isEmpty { return }
    var array = GrowingArray(of: schema.fields[0])
    for name in text.split(separator: ",", omittingEmptySubsequences: false) {
      guard let path = FieldMaskPath.snakeCase(String(name)), !path.isEmpty, !path.utf8.contains(0) else {
        throw self.reader.failure("\(schema.name): '\(name)' is no path")
      }
      try self.memory.store(path, in: try array.next(in: self.memory))
      array.keep()
    }
    array.store(in: message)
  }

  // MARK: Any

  private mutating func readAny(
    into message: MessagePointer,
    of schema: MessageSchema,
    depth: Int
  ) throws(ConnectError) {
    // The member `@type` may be anywhere in the object, so a second reader looks for it first.
    var ahead = self.reader
    guard let url = try Self.typeURL(in: &ahead) else {
      try self.reader.expect("{")
      guard self.reader.take("}") else { throw self.reader.failure("\(schema.name): '@type' expected") }
      return
    }
    guard let inner = self.types.message(typeURL: url), !url.utf8.contains(0) else {
      throw self.reader.failure("\(schema.name): the type '\(url)' is not known")
    }
    // The content has a separate arena, as it goes into the message as bytes. Its limit is what the outer arena has
    // left, so that nested messages share one limit.
    let content = MessageHandle(inner.descriptor, graph: self.types)
    content.storage.arena.limit =
      content.storage.arena.used
      + max(0, self.memory.arena.limit - self.memory.arena.used)
    var decoding = JSONDecoding(
      reader: self.reader,
      memory: DecodingMemory(arena: content.storage.arena),
      types: self.types,
      ignoresUnknownFields: self.ignoresUnknownFields,
      limits: self.limits
    )
    if inner.wellKnown != nil {
      try decoding.readWellKnownInAny(into: content.message, of: inner, depth: depth + 1)
    } else {
      guard depth + 1 < self.limits.maximumDepth else { throw self.tooDeep(in: schema) }
      try decoding.readFields(into: content.message, of: inner, depth: depth + 1, isInAny: true)
    }
    self.reader = decoding.reader
    // Encoding would write a missing field as zero or empty.
    if let name = RequiredCheck.missingField(in: content.message, of: inner.table) {
      throw self.reader.failure("\(name): required, but not set")
    }
    let bytes = try BinaryCoding.encode(content, of: inner.table)
    try self.memory.store(url, in: message.place(of: schema.fields[0]))
    try self.memory.store(bytes, in: message.place(of: schema.fields[1]))
  }

  /// A message in an `Any` whose JSON may not be an object: it is in the member `value`.
  private mutating func readWellKnownInAny(
    into message: MessagePointer,
    of schema: MessageSchema,
    depth: Int
  ) throws(ConnectError) {
    try self.reader.expect("{")
    var hasValue = false
    repeat {
      let name = try self.reader.string()
      try self.reader.expect(":")
      if name == "value", !hasValue {
        hasValue = true
        try self.readMessage(into: message, of: schema, depth: depth)
      } else if name == "@type" || self.ignoresUnknownFields {
        try self.reader.skipValue()
      } else {
        throw self.reader.failure("\(schema.name) has no field '\(name)'")
      }
    } while self.reader.take(",")
    try self.reader.expect("}")
    guard hasValue else { throw self.reader.failure("\(schema.name): 'value' expected") }
  }

  /// The member `@type` of an object.
  private static func typeURL(in reader: inout JSONReader) throws(ConnectError) -> String? {
    try reader.expect("{")
    if reader.take("}") { return nil }
    repeat {
      let name = try reader.string()
      try reader.expect(":")
      if name == "@type" { return try reader.string() }
      try reader.skipValue()
    } while reader.take(",")
    return nil
  }
}
