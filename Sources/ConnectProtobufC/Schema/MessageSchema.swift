internal import CProtobufC

/// What a type of messages is: its fields, by number and by name.
final class MessageSchema: @unchecked Sendable {
  // Safe to share: `containsMaps` is set once, while the graph is built, before others see it.

  let descriptor: MessageDescriptorPointer
  /// For decoding; there as long as the graph.
  let table: UnsafePointer<WireTable>
  let name: String
  /// By number.
  let fields: [FieldSchema]
  /// Of ``fields``.
  let slots: [FieldSlot]
  let isMapEntry: Bool
  let wellKnown: WellKnownType?
  /// The names of the oneofs, in the order of the proto file, and their members.
  let oneofs: [(name: String, members: [FieldSchema])]
  /// By the proto file's names.
  private let byName: [String: FieldSchema]
  /// By all names that JSON may use.
  private let byJSONName: [String: Int]
  /// Whether a map can be in a message of this type, at any depth.
  fileprivate(set) var containsMaps = false

  init(
    _ descriptor: MessageDescriptorPointer,
    tables: WireTables,
    isMapEntry: Bool,
    oneofs: [(name: String, members: [Int32])],
    jsonNames: (_ field: String) -> String?
  ) {
    self.descriptor = descriptor
    self.table = tables.table(of: descriptor)
    self.name = descriptor.fullName
    self.fields = descriptor.fieldPointers.map {
      FieldSchema($0, jsonName: jsonNames(String(cString: $0.pointee.name)))
    }
    self.isMapEntry = isMapEntry && Self.isKeyAndValue(self.fields)
    let byNumber = Dictionary(self.fields.map { (Int32(bitPattern: $0.number), $0) }) { first, _ in first }
    self.oneofs = oneofs.map { oneof in (oneof.name, oneof.members.sorted().compactMap { byNumber[$0] }) }
    self.slots = self.fields.map(\.slot)
    self.byName = Dictionary(self.fields.map { ($0.name, $0) }) { first, _ in first }
    let indices = self.fields.enumerated()
    self.byJSONName = Dictionary(
      indices.map { ($1.jsonName, $0) } + indices.map { ($1.name, $0) }
    ) { json, _ in json }
    self.wellKnown = WellKnownType(rawValue: self.name).flatMap { [fields] in $0.fits(fields) ? $0 : nil }
  }

  private static func isKeyAndValue(_ fields: [FieldSchema]) -> Bool {
    guard fields.map(\.number) == [1, 2],
      fields.allSatisfy({ $0.cardinality != .repeated && !$0.isOneofMember })
    else {
      return false
    }
    switch fields[0].kind {
    case .float, .double, .enumeration, .bytes, .message: return false
    default: return true
    }
  }

  func field(named name: String) -> FieldSchema? { self.byName[name] }

  /// The index of the field that JSON calls so.
  func index(jsonName: String) -> Int? { self.byJSONName[jsonName] }

  func field(number: UInt32) -> FieldSchema? {
    var low = 0
    var high = self.fields.count
    while low < high {
      let middle = (low + high) / 2
      let field = self.fields[middle]
      if field.number == number { return field }
      if field.number < number { low = middle + 1 } else { high = middle }
    }
    return nil
  }
}

/// All types that a type reaches, linked with one another.
final class SchemaGraph: @unchecked Sendable {
  // Safe to share: nothing changes after `init`, which links the types.

  /// What a descriptor set says of a file's types, by their full names.
  struct Metadata {
    struct Message {
      var isMapEntry: Bool
      /// In the order of the proto file, with the numbers of their members.
      var oneofs: [(name: String, members: [Int32])]
      var jsonNames: [String: String]
    }

    var messages: [String: Message]
    var enums: [String: EnumSchema]
  }

  /// Of messages, by their full names.
  let messages: [String: MessageSchema]
  /// A message of which the JSON names and maps are not known; nil if there is none.
  let messageWithoutMetadata: String?
  /// Where the types of what is in `google.protobuf.Any` are found; nil if in this graph.
  let typesOfAny: SchemaGraph?
  private let enums: [String: EnumSchema]
  /// The memory of descriptors that were made at run time.
  private let memory: DescriptorMemory?
  private let tables: WireTables

  /// - Parameter metadata: nil takes the usual JSON names, and no message for a map's entry.
  init(
    _ roots: [MessageDescriptorPointer],
    metadata: Metadata?,
    typesOfAny: SchemaGraph? = nil,
    memory: DescriptorMemory? = nil
  ) {
    let tables = memory == nil ? WireTables.ofStructs : WireTables()
    var messages: [String: MessageSchema] = [:]
    var enums: [String: EnumSchema] = [:]
    var open = roots
    while let descriptor = open.popLast() {
      let name = descriptor.fullName
      if messages[name] != nil { continue }
      let known = metadata?.messages[name]
      messages[name] = MessageSchema(
        descriptor,
        tables: tables,
        isMapEntry: known?.isMapEntry ?? false,
        oneofs: known?.oneofs ?? []
      ) {
        known?.jsonNames[$0]
      }
      for field in descriptor.fieldPointers {
        switch field.pointee.kind {
        case .message:
          if let inner = field.pointee.messageDescriptor { open.append(inner) }
        case .enumeration:
          guard let type = field.pointee.descriptor?.assumingMemoryBound(to: ProtobufCEnumDescriptor.self)
          else { continue }
          let name = String(cString: type.pointee.name)
          if enums[name] == nil { enums[name] = metadata?.enums[name] ?? EnumSchema(type.pointee) }
        default:
          break
        }
      }
    }
    for message in messages.values {
      for field in message.fields {
        field.link(
          message: field.kind == .message ? field.typeName.flatMap { messages[$0] } : nil,
          enumeration: field.kind == .enumeration ? field.typeName.flatMap { enums[$0] } : nil
        )
      }
    }
    self.messages = messages
    self.enums = enums
    self.messageWithoutMetadata = messages.keys.first { metadata?.messages[$0] == nil }
    self.typesOfAny = typesOfAny
    self.memory = memory
    self.tables = tables
    self.markMaps()
  }

  private func markMaps() {
    var owners = Owners<String>()
    var withMaps: [String] = []
    for message in self.messages.values {
      if message.fields.contains(where: \.isMap) { withMaps.append(message.name) }
      for field in message.fields {
        if let inner = field.message { owners.add(message.name, of: inner.name) }
      }
    }
    for name in owners.reached(from: withMaps) { self.messages[name]?.containsMaps = true }
  }
}

extension SchemaGraph {
  /// The name of a field that is not the same in both, as after a change of the proto file, or by an option of protoc-c;
  /// nil if there is none.
  func fieldThatDiffers(from other: SchemaGraph) -> String? {
    for (name, message) in self.messages {
      guard let other = other.messages[name] else { continue }
      let field = message.fields.first { field in
        guard let other = other.field(number: field.number) else { return true }
        return other.name != field.name || other.kind != field.kind
          || (other.cardinality == .repeated) != (field.cardinality == .repeated)
      }
      if let field { return "\(name).\(field.name)" }
    }
    return nil
  }
}

extension EnumSchema {
  fileprivate convenience init(_ descriptor: ProtobufCEnumDescriptor) {
    let values = (0..<Int(descriptor.n_value_names)).map { index in
      let value = descriptor.values_by_name[index]
      return (name: String(cString: value.name), number: descriptor.values[Int(value.index)].value)
    }
    // The names of `values` come first, of which there is one for each number.
    let primary = (0..<Int(descriptor.n_values)).map { index in
      (name: String(cString: descriptor.values[index].name), number: descriptor.values[index].value)
    }
    self.init(name: String(cString: descriptor.name), values: primary + values)
  }
}

/// Messages that JSON writes in a way of their own.
enum WellKnownType: String {
  case any = "google.protobuf.Any"
  case timestamp = "google.protobuf.Timestamp"
  case duration = "google.protobuf.Duration"
  case fieldMask = "google.protobuf.FieldMask"
  case structure = "google.protobuf.Struct"
  case value = "google.protobuf.Value"
  case listValue = "google.protobuf.ListValue"
  case doubleValue = "google.protobuf.DoubleValue"
  case floatValue = "google.protobuf.FloatValue"
  case int64Value = "google.protobuf.Int64Value"
  case uint64Value = "google.protobuf.UInt64Value"
  case int32Value = "google.protobuf.Int32Value"
  case uint32Value = "google.protobuf.UInt32Value"
  case boolValue = "google.protobuf.BoolValue"
  case stringValue = "google.protobuf.StringValue"
  case bytesValue = "google.protobuf.BytesValue"

  /// Whether these are the type's fields, as far as its JSON relies on them.
  fileprivate func fits(_ fields: [FieldSchema]) -> Bool {
    let expected: [(UInt32, FieldKind, isRepeated: Bool)] =
      switch self {
      case .any: [(1, .string, false), (2, .bytes, false)]
      case .timestamp, .duration: [(1, .int64, false), (2, .int32, false)]
      case .fieldMask: [(1, .string, true)]
      case .structure, .listValue: [(1, .message, true)]
      case .value:
        [
          (1, .enumeration, false), (2, .double, false), (3, .string, false), (4, .bool, false),
          (5, .message, false),
          (6, .message, false),
        ]
      case .doubleValue: [(1, .double, false)]
      case .floatValue: [(1, .float, false)]
      case .int64Value: [(1, .int64, false)]
      case .uint64Value: [(1, .uint64, false)]
      case .int32Value: [(1, .int32, false)]
      case .uint32Value: [(1, .uint32, false)]
      case .boolValue: [(1, .bool, false)]
      case .stringValue: [(1, .string, false)]
      case .bytesValue: [(1, .bytes, false)]
      }
    guard fields.count == expected.count else { return false }
    return zip(fields, expected).allSatisfy { field, expected in
      field.number == expected.0 && field.kind == expected.1
        && (field.cardinality == .repeated) == expected.isRepeated && field.isOneofMember == (self == .value)
    }
  }

  /// A message with one field, which stands for itself.
  var isWrapper: Bool {
    switch self {
    case .doubleValue, .floatValue, .int64Value, .uint64Value, .int32Value, .uint32Value, .boolValue,
      .stringValue,
      .bytesValue:
      true
    default:
      false
    }
  }
}
