internal import CProtobufC
internal import Connect

/// Looks at a message in memory before it is encoded or copied, for what C code or a forgotten pointer may have left in
/// it and libprotobuf-c would crash on or send in silence.
///
/// What it cannot see is a pointer to memory that is no longer there, or an array that is shorter than its count.
struct StructCheck {
  let maximumDepth: Int

  /// Checks `message` unless it is known to be right.
  static func check(_ message: MessageHandle) throws(ConnectError) {
    if message.storage.isChecked { return }
    try StructCheck(maximumDepth: DecodingLimits.defaults.maximumDepth).check(
      message.pointer,
      message.descriptor
    )
  }

  func check(_ message: UnsafeRawPointer, _ expected: MessageDescriptorPointer) throws(ConnectError) {
    try self.checkMessage(message, expected, depth: 0)
  }

  private func checkMessage(
    _ message: UnsafeRawPointer,
    _ expected: MessageDescriptorPointer,
    depth: Int
  ) throws(ConnectError) {
    guard let descriptor = message.load(as: MessageDescriptorPointer?.self) else {
      throw .misuse("a struct that is to be a \(expected.fullName) was not initialised")
    }
    guard descriptor == expected else {
      guard descriptor.pointee.magic == UInt32(PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC) else {
        throw .misuse("a struct that is to be a \(expected.fullName) is no message")
      }
      throw .misuse("a struct that is to be a \(expected.fullName) is a \(descriptor.fullName)")
    }
    guard depth < self.maximumDepth else {
      throw .unencodable("\(descriptor.fullName): more than \(self.maximumDepth) nested messages")
    }
    try self.checkUnknownFields(message.assumingMemoryBound(to: ProtobufCMessage.self), descriptor)
    for field in descriptor.fieldPointers {
      let kind = field.pointee.kind
      let place = message + Int(field.pointee.offset)
      if field.pointee.isOneofMember {
        let setCase = message.load(fromByteOffset: Int(field.pointee.quantifier_offset), as: UInt32.self)
        if setCase != field.pointee.id { continue }
      }
      if kind.isPackable, !field.pointee.isRepeated { continue }
      guard field.pointee.isRepeated else {
        try self.checkValue(place, kind, descriptor, field, depth: depth)
        continue
      }
      let count = message.load(fromByteOffset: Int(field.pointee.quantifier_offset), as: Int.self)
      if count == 0 { continue }
      guard count > 0, let array = place.load(as: UnsafeRawPointer?.self) else {
        throw .unencodable("\(descriptor.name(of: field)): \(count) values in no array")
      }
      if kind.isPackable { continue }
      for index in 0..<count {
        let element = array + index * kind.size
        if kind != .bytes, element.load(as: UnsafeRawPointer?.self) == nil {
          throw .unencodable("\(descriptor.name(of: field))[\(index)]: a null pointer")
        }
        try self.checkValue(element, kind, descriptor, field, depth: depth)
      }
    }
  }

  private func checkUnknownFields(
    _ message: UnsafePointer<ProtobufCMessage>,
    _ descriptor: MessageDescriptorPointer
  ) throws(ConnectError) {
    let count = Int(message.pointee.n_unknown_fields)
    if count == 0 { return }
    guard let fields = message.pointee.unknown_fields else {
      throw .unencodable("\(descriptor.fullName): \(count) unknown fields in no array")
    }
    for index in 0..<count where fields[index].data == nil && fields[index].len != 0 {
      throw .unencodable(
        "\(descriptor.fullName): an unknown field's \(fields[index].len) bytes at a null pointer"
      )
    }
  }

  private func checkValue(
    _ place: UnsafeRawPointer,
    _ kind: FieldKind,
    _ descriptor: MessageDescriptorPointer,
    _ field: UnsafePointer<ProtobufCFieldDescriptor>,
    depth: Int
  ) throws(ConnectError) {
    switch kind {
    case .string, .message:
      guard let pointer = place.load(as: UnsafeRawPointer?.self) else { return }
      if kind == .string {
        let text = pointer.assumingMemoryBound(to: UInt8.self)
        guard case .valid = UTF8Check(text, count: CString.length(pointer)) else {
          throw .unencodable("\(descriptor.name(of: field)): invalid UTF-8")
        }
      } else if let inner = field.pointee.messageDescriptor {
        try self.checkMessage(pointer, inner, depth: depth + 1)
      }
    case .bytes:
      let bytes = place.load(as: ProtobufCBinaryData.self)
      guard let data = bytes.data, bytes.len >= 0 else {
        if bytes.len == 0 { return }
        throw .unencodable("\(descriptor.name(of: field)): \(bytes.len) bytes at a null pointer")
      }
      if field.pointee.isStringAsBytes, case .invalid = UTF8Check(data, count: bytes.len) {
        throw .unencodable("\(descriptor.name(of: field)): invalid UTF-8")
      }
    default:
      break
    }
  }
}
