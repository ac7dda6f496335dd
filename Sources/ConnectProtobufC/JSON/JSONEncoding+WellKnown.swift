internal import CProtobufC
internal import Connect
internal import NIOCore

extension JSONEncoding {
  /// - Parameter schema: The schema of `type`. ``MessageSchema`` has checked its fields.
  mutating func writeWellKnown(
    _ message: MessagePointer,
    of schema: MessageSchema,
    as type: WellKnownType
  ) throws(ConnectError) {
    switch type {
    case .any:
      try self.writeAny(message, of: schema)
    case .timestamp:
      let time = ProtobufTime(message, of: schema)
      guard time.isTimestamp else { throw .unencodable("\(time.description): out of a timestamp's range") }
      time.writeTimestamp(to: &self.out)
    case .duration:
      let time = ProtobufTime(message, of: schema)
      guard time.isDuration else { throw .unencodable("\(time.description): out of a duration's range") }
      time.writeDuration(to: &self.out)
    case .fieldMask:
      try self.writeFieldMask(message, of: schema)
    case .structure:
      try self.writeMap(schema.fields[0], in: message)
    case .listValue:
      try self.writeList(schema.fields[0], in: message)
    case .value:
      try self.writeDynamicValue(message, of: schema)
    case .doubleValue, .floatValue, .int64Value, .uint64Value, .int32Value, .uint32Value, .boolValue,
      .stringValue,
      .bytesValue:
      try self.writeValue(at: message.place(of: schema.fields[0]))
    }
  }

  private mutating func writeDynamicValue(
    _ message: MessagePointer,
    of schema: MessageSchema
  ) throws(ConnectError) {
    guard let field = schema.fields.first(where: { message.isSelected($0) }) else {
      throw .unencodable("google.protobuf.Value: nothing is set")
    }
    let place = message.place(of: field)
    if field.kind == .double, !place.load(as: Double.self).isFinite {
      throw .unencodable("google.protobuf.Value: JSON has no such number")
    }
    if field.kind == .enumeration {
      self.out.raw("null")
    } else {
      try self.writeValue(at: place)
    }
  }

  private mutating func writeFieldMask(
    _ message: MessagePointer,
    of schema: MessageSchema
  ) throws(ConnectError) {
    var paths: [String] = []
    for place in message.elements(of: schema.fields[0]) {
      let path = place.string
      guard let name = FieldMaskPath.camelCase(path) else {
        throw .unencodable("google.protobuf.FieldMask: '\(path)' has no name in JSON")
      }
      paths.append(name)
    }
    self.out.string(paths.joined(separator: ","))
  }

  private mutating func writeAny(_ message: MessagePointer, of schema: MessageSchema) throws(ConnectError) {
    let url = message.place(of: schema.fields[0]).string
    let bytes = message.place(of: schema.fields[1]).bytes
    if url.isEmpty, bytes.isEmpty {
      self.out.raw("{}")
      return
    }
    guard let inner = self.types.message(typeURL: url) else {
      if self.keepsUndecodedAny {
        self.unknownTypeURLs.insert(url)
        self.writeUndecodedAny(url, bytes)
        return
      }
      throw .unencodable("google.protobuf.Any: the type '\(url)' is not known")
    }
    // Nested messages are in memory at the same time, so they share the limit of one.
    let memory = self.memoryOfAny ?? self.limits.memory(forBytes: bytes.count)
    let content: MessageHandle
    do throws(ConnectError) {
      content = try BinaryCoding.decode(
        bytes,
        of: inner.table,
        graph: self.types,
        limits: DecodingLimits(maximumDepth: self.limits.maximumDepth, maximumMemory: memory),
        isPartial: true
      )
    } catch {
      guard self.keepsUndecodedAny else { throw error }
      self.writeUndecodedAny(url, bytes)
      return
    }
    let outerMemory = self.memoryOfAny
    self.memoryOfAny = memory - content.storage.arena.used
    defer { self.memoryOfAny = outerMemory }
    self.out.raw("{\"@type\":")
    self.out.string(url)
    try withExtendedLifetime(content.storage) { () throws(ConnectError) in
      if inner.wellKnown != nil {
        self.out.raw(",\"value\":")
        try self.write(content.message, of: inner)
      } else {
        try self.writeFields(in: content.message, of: inner, isFirst: false)
      }
    }
    self.out.byte(UInt8(ascii: "}"))
  }

  private mutating func writeUndecodedAny(_ url: String, _ bytes: UnsafeRawBufferPointer) {
    self.out.raw("{\"@type\":")
    self.out.string(url)
    self.out.raw(",\"value\":")
    self.out.base64(bytes)
    self.out.byte(UInt8(ascii: "}"))
  }
}

extension SchemaGraph {
  /// The type whose name follows the last slash.
  func message(typeURL: String) -> MessageSchema? {
    guard let slash = typeURL.lastIndex(of: "/") else { return nil }
    return self.messages[String(typeURL[typeURL.index(after: slash)...])]
  }
}

/// A path of a `google.protobuf.FieldMask`: with underscores in protobuf, in lowerCamelCase in JSON.
enum FieldMaskPath {
  /// nil if converting back would not give the same path.
  static func camelCase(_ path: String) -> String? {
    let name = path.split(separator: ".", omittingEmptySubsequences: false)
      .map { MessageSchema.defaultJSONName(String($0)) }.joined(separator: ".")
    return self.snakeCase(name) == path ? name : nil
  }

  /// nil if the path already has underscores.
  static func snakeCase(_ path: String) -> String? {
    var result = ""
    for character in path.utf8 {
      switch character {
      case UInt8(ascii: "_"):
        return nil
      case UInt8(ascii: "A")...UInt8(ascii: "Z"):
        result.unicodeScalars.append("_")
        result.unicodeScalars.append(Unicode.Scalar(character + 32))
      case 0x80...:
        return nil
      default:
        result.unicodeScalars.append(Unicode.Scalar(character))
      }
    }
    return result
  }
}
