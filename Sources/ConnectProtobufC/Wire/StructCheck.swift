internal import CProtobufC
internal import Connect

/// Checks a message in memory before it is encoded or copied. Finds mistakes of C code, such as forgotten pointers,
/// that libprotobuf-c would crash on or send silently.
///
/// It cannot detect dangling pointers, or an array that is shorter than its count.
///
/// Invariant: it reads only. It follows a pointer that is not null, and reads an inner message as the type that its own
/// descriptor names. That what is not null is valid, the C code that wrote it ensures.
struct StructCheck {
  let maximumDepth: Int

  /// Checks `message` unless it is already known to be valid.
  static func check(_ message: MessageHandle, of table: MessageTable) throws(ConnectError) {
    if message.storage.isChecked { return }
    try StructCheck(maximumDepth: DecodingLimits.defaults.maximumDepth).check(message.message, of: table)
  }

  func check(_ message: MessagePointer, of table: MessageTable) throws(ConnectError) {
    try self.checkMessage(message, of: table, depth: 0)
  }

  private func checkMessage(
    _ message: MessagePointer,
    of table: MessageTable,
    depth: Int
  ) throws(ConnectError) {
    guard let descriptor = message.descriptor else {
      throw .misuse("a struct that is to be a \(table.name) was not initialised")
    }
    guard descriptor == table.descriptor else {
      guard descriptor.pointee.magic == UInt32(PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC) else {
        throw .misuse("a struct that is to be a \(table.name) is no message")
      }
      throw .misuse("a struct that is to be a \(table.name) is a \(descriptor.fullName)")
    }
    guard depth < self.maximumDepth else {
      throw .unencodable("\(table.name): more than \(self.maximumDepth) nested messages")
    }
    try self.checkUnknownFields(of: message.base, of: table)
    for field in table.fields {
      switch field.form {
      case .repeated:
        try self.checkElements(of: field, in: message, of: table, depth: depth)
      case .oneofMember where !message.isSelected(field):
        continue
      case .oneofMember, .plain, .flagged:
        if field.kind.isPackable { continue }
        try self.checkValue(at: message.place(of: field), of: table, depth: depth)
      }
    }
  }

  private func checkElements(
    of field: FieldSchema,
    in message: MessagePointer,
    of table: MessageTable,
    depth: Int
  ) throws(ConnectError) {
    let count = message.storedCount(of: field)
    if count == 0 { return }
    guard count > 0, message.array(of: field) != nil else {
      throw .unencodable("\(table.name(of: field)): \(count) values in no array")
    }
    if field.kind.isPackable { return }
    for (index, place) in message.elements(of: field).enumerated() {
      if field.storedKind != .bytes, place.pointer == nil {
        throw .unencodable("\(table.name(of: field))[\(index)]: a null pointer")
      }
      try self.checkValue(at: place, of: table, depth: depth)
    }
  }

  private func checkUnknownFields(
    of message: UnsafePointer<ProtobufCMessage>,
    of table: MessageTable
  ) throws(ConnectError) {
    let count = Int(message.pointee.n_unknown_fields)
    if count == 0 { return }
    guard let fields = message.pointee.unknown_fields else {
      throw .unencodable("\(table.name): \(count) unknown fields in no array")
    }
    for index in 0..<count where fields[index].data == nil && fields[index].len != 0 {
      throw .unencodable("\(table.name): an unknown field's \(fields[index].len) bytes at a null pointer")
    }
  }

  private func checkValue(
    at place: FieldPlace,
    of table: MessageTable,
    depth: Int
  ) throws(ConnectError) {
    let field = place.field
    switch field.storedKind {
    case .string:
      if case .invalid = UTF8Check(place.bytes) {
        throw .unencodable("\(table.name(of: field)): invalid UTF-8")
      }
    case .message:
      if let message = place.message, let inner = field.table {
        try self.checkMessage(message, of: inner, depth: depth + 1)
      }
    case .bytes:
      let bytes = place.load(as: ProtobufCBinaryData.self)
      guard bytes.data != nil, bytes.len >= 0 else {
        if bytes.len == 0 { return }
        throw .unencodable("\(table.name(of: field)): \(bytes.len) bytes at a null pointer")
      }
      if field.isStringAsBytes, case .invalid = UTF8Check(place.bytes) {
        throw .unencodable("\(table.name(of: field)): invalid UTF-8")
      }
    default:
      break
    }
  }
}
