internal import CProtobufC
internal import Connect
internal import NIOCore

extension JSONEncoding {
  /// - Parameter schema: Has the fields of `type`, which ``MessageSchema`` made sure of.
  mutating func wellKnown(
    _ message: UnsafeRawPointer,
    _ schema: MessageSchema,
    _ type: WellKnownType
  ) throws(ConnectError) {
    switch type {
    case .any:
      try self.any(message, schema)
    case .timestamp:
      let time = ProtobufTime(message, schema)
      guard time.isTimestamp else { throw .unencodable("\(time.description): out of a timestamp's range") }
      time.writeTimestamp(to: &self.out)
    case .duration:
      let time = ProtobufTime(message, schema)
      guard time.isDuration else { throw .unencodable("\(time.description): out of a duration's range") }
      time.writeDuration(to: &self.out)
    case .fieldMask:
      try self.fieldMask(message, schema.fields[0])
    case .structure:
      try self.map(message, schema.fields[0])
    case .listValue:
      try self.list(message, schema.fields[0])
    case .value:
      try self.value(message, schema)
    case .doubleValue, .floatValue, .int64Value, .uint64Value, .int32Value, .uint32Value, .boolValue,
      .stringValue,
      .bytesValue:
      let field = schema.fields[0]
      try self.value(at: message + field.offset, field)
    }
  }

  private mutating func value(_ message: UnsafeRawPointer, _ schema: MessageSchema) throws(ConnectError) {
    guard let field = schema.fields.first(where: { $0.isSelected(in: message) }) else {
      throw .unencodable("google.protobuf.Value: nothing is set")
    }
    let place = message + field.offset
    if field.kind == .double, !place.load(as: Double.self).isFinite {
      throw .unencodable("google.protobuf.Value: JSON has no such number")
    }
    if field.kind == .enumeration {
      self.out.raw("null")
    } else {
      try self.value(at: place, field)
    }
  }

  private mutating func fieldMask(_ message: UnsafeRawPointer, _ field: FieldSchema) throws(ConnectError) {
    var paths: [String] = []
    for index in 0..<field.count(in: message) {
      guard let place = field.element(index, in: message) else { break }
      let path = field.string(at: place)
      guard let name = FieldMaskPath.camelCase(path) else {
        throw .unencodable("google.protobuf.FieldMask: '\(path)' has no name in JSON")
      }
      paths.append(name)
    }
    self.out.string(paths.joined(separator: ","))
  }

  private mutating func any(_ message: UnsafeRawPointer, _ schema: MessageSchema) throws(ConnectError) {
    let url = schema.fields[0].string(at: message + schema.fields[0].offset)
    let bytes = schema.fields[1].bytes(at: message + schema.fields[1].offset)
    if url.isEmpty, bytes.isEmpty {
      self.out.raw("{}")
      return
    }
    guard let inner = self.types.message(typeURL: url) else {
      throw .unencodable("google.protobuf.Any: the type '\(url)' is not known")
    }
    // Those in one another, which are there at once, have no more memory than one.
    let memory = self.memoryOfAny ?? self.limits.memory(forBytes: bytes.count)
    let content = try BinaryCoding.decode(
      bytes,
      inner.table,
      graph: self.types,
      limits: DecodingLimits(maximumDepth: self.limits.maximumDepth, maximumMemory: memory),
      isPartial: true
    )
    let outerMemory = self.memoryOfAny
    self.memoryOfAny = memory - content.storage.arena.used
    defer { self.memoryOfAny = outerMemory }
    self.out.raw("{\"@type\":")
    self.out.string(url)
    try withExtendedLifetime(content.storage) { () throws(ConnectError) in
      if inner.wellKnown != nil {
        self.out.raw(",\"value\":")
        try self.message(content.pointer, inner)
      } else {
        try self.fields(content.pointer, inner, isFirst: false)
      }
    }
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

/// A path of a `google.protobuf.FieldMask`, with underscores in protobuf and in lowerCamelCase in JSON.
enum FieldMaskPath {
  /// nil if the way back would not give the same.
  static func camelCase(_ path: String) -> String? {
    let name = path.split(separator: ".", omittingEmptySubsequences: false)
      .map { FieldSchema.defaultJSONName(String($0)) }.joined(separator: ".")
    return self.snakeCase(name) == path ? name : nil
  }

  /// nil if there are underscores already.
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
