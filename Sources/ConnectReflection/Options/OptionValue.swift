internal import Connect
internal import NIOCore
internal import SwiftProtobuf

/// The value of an option, as proto files write it.
indirect enum OptionValue {
  case literal(String)
  case message([Member])

  struct Member {
    var field: OptionField
    /// The name in protobuf's text format.
    var name: String
    var value: OptionValue
  }

  /// In one line.
  var line: String {
    switch self {
    case .literal(let text): return text
    case .message(let members):
      let texts = members.map { member in
        if case .message = member.value { return "\(member.name) \(member.value.line)" }
        return "\(member.name): \(member.value.line)"
      }
      return texts.isEmpty ? "{}" : "{ \(texts.joined(separator: " ")) }"
    }
  }

  /// The lines between the braces of a message.
  var lines: [String] {
    guard case .message(let members) = self else { return [self.line] }
    return members.flatMap { member -> [String] in
      guard case .message(let inner) = member.value, !inner.isEmpty else {
        return [member.value.isMessage ? "\(member.name) {}" : "\(member.name): \(member.value.line)"]
      }
      return ["\(member.name) {"] + member.value.lines.map { "  \($0)" } + ["}"]
    }
  }

  var isMessage: Bool { if case .message = self { true } else { false } }
}

/// Turns the bytes of options into values.
struct OptionReader {
  /// The maximum nesting of messages.
  private static let mostDepth = 64

  private var schema: OptionSchema
  private let names: TypeNames
  /// Descriptions of values that could not be read.
  var leftOut: [String] = []

  init(_ index: SymbolIndex) {
    self.schema = OptionSchema(index)
    self.names = TypeNames(index: index)
  }

  /// The options that are set, in the order of the bytes.
  mutating func members(of options: some SwiftProtobuf.Message, named type: String) -> [OptionValue.Member] {
    guard let bytes: [UInt8] = try? options.serializedBytes(partial: true), !bytes.isEmpty else { return [] }
    return self.members(ByteBuffer(bytes: bytes), of: type, depth: 0)
  }

  private mutating func members(
    _ bytes: ByteBuffer,
    of type: String,
    depth: Int
  ) -> [OptionValue.Member] {
    guard depth < Self.mostDepth, let wireFields = ProtobufReader.fields(of: bytes) else {
      self.leftOut.append("a \(type) that does not decode")
      return []
    }
    var members: [OptionValue.Member] = []
    // The places of messages that are encoded in several pieces.
    var pieces: [Int32: (place: Int, bytes: ByteBuffer)] = [:]
    let isMessageSet = self.schema.isMessageSet(type)
    for wireField in wireFields {
      var wireField = wireField
      if isMessageSet, wireField.number == 1, case .group(let bytes) = wireField.value {
        wireField = ProtobufReader.messageSetItem(bytes) ?? wireField
      }
      guard let field = self.schema.field(wireField.number, of: type) else {
        self.leftOut.append("field \(wireField.number) of \(type), which the proto files do not define")
        continue
      }
      let name = self.name(of: field, in: type)
      switch wireField.value {
      case .bytes(let bytes) where field.isMessage, .group(let bytes) where field.isMessage:
        if !field.isRepeated {
          if pieces[field.number] == nil {
            pieces[field.number] = (members.count, ByteBuffer())
            members.append(OptionValue.Member(field: field, name: name, value: .message([])))
          }
          pieces[field.number]?.bytes.writeImmutableBuffer(bytes)
          continue
        }
        let inner = self.members(bytes, of: field.typeName, depth: depth + 1)
        members.append(OptionValue.Member(field: field, name: name, value: .message(inner)))
      default:
        guard let literals = self.literals(wireField.value, of: field) else {
          self.leftOut.append("\(field.name) of \(type), which has a value that cannot be written")
          continue
        }
        members += literals.map { OptionValue.Member(field: field, name: name, value: .literal($0)) }
      }
    }
    for (place, bytes) in pieces.values {
      let type = members[place].field.typeName
      members[place].value = .message(self.members(bytes, of: type, depth: depth + 1))
    }
    return members
  }

  private func name(of field: OptionField, in type: String) -> String {
    if field.isExtension {
      // Looks names up as if the extension were declared beside the message that it extends.
      let scope = type.lastIndex(of: ".").map { String(type[..<$0]) } ?? ""
      return "[\(self.names.fullName(field.name, in: scope))]"
    }
    // Groups go by the names of their types.
    return field.kind == .group ? String(ProtoText.lastPart(field.typeName)) : field.name
  }

  /// - Returns: Several literals for packed numbers; nil if the value is not of the field's type.
  private mutating func literals(_ value: ProtobufReader.Value, of field: OptionField) -> [String]? {
    switch (value, field.kind) {
    case (.bytes(let bytes), .string):
      let bytes = bytes.readableBytesView
      return [String(validating: bytes, as: UTF8.self).map(ProtoText.quoted) ?? ProtoText.quoted(bytes)]
    case (.bytes(let bytes), .bytes):
      return [ProtoText.quoted(bytes.readableBytesView)]
    case (.bytes(let bytes), _):
      guard field.isRepeated else { return nil }
      return self.row(bytes, of: field)
    default:
      guard let literal = self.literal(value, of: field) else { return nil }
      return [literal]
    }
  }

  private mutating func row(_ bytes: ByteBuffer, of field: OptionField) -> [String]? {
    var reader = ProtobufReader(bytes)
    var literals: [String] = []
    while !reader.isAtEnd {
      let value: ProtobufReader.Value?
      switch field.kind {
      case .double, .fixed64, .sfixed64: value = reader.fixed(UInt64.self).map { .fixed64($0) }
      case .float, .fixed32, .sfixed32: value = reader.fixed(UInt32.self).map { .fixed32($0) }
      default: value = reader.varint().map { .varint($0) }
      }
      guard let value, let literal = self.literal(value, of: field) else { return nil }
      literals.append(literal)
    }
    return literals
  }

  private mutating func literal(_ value: ProtobufReader.Value, of field: OptionField) -> String? {
    switch (value, field.kind) {
    case (.varint(let bits), .bool): bits == 0 ? "false" : "true"
    case (.varint(let bits), .int32): "\(Int32(truncatingIfNeeded: bits))"
    case (.varint(let bits), .int64): "\(Int64(bitPattern: bits))"
    case (.varint(let bits), .uint32): "\(UInt32(truncatingIfNeeded: bits))"
    case (.varint(let bits), .uint64): "\(bits)"
    case (.varint(let bits), .sint32), (.varint(let bits), .sint64):
      "\(Int64(bitPattern: bits >> 1) ^ -Int64(bitPattern: bits & 1))"
    case (.varint(let bits), .enum):
      self.schema.name(ofValue: Int32(truncatingIfNeeded: bits), of: field.typeName)
    case (.fixed64(let bits), .fixed64): "\(bits)"
    case (.fixed64(let bits), .sfixed64): "\(Int64(bitPattern: bits))"
    case (.fixed64(let bits), .double): "\(Double(bitPattern: bits))"
    case (.fixed32(let bits), .fixed32): "\(bits)"
    case (.fixed32(let bits), .sfixed32): "\(Int32(bitPattern: bits))"
    case (.fixed32(let bits), .float): "\(Float(bitPattern: bits))"
    default: nil
    }
  }
}
