internal import CProtobufC

/// All types that a type reaches, linked with each other.
final class SchemaGraph: @unchecked Sendable {
  // Safe to share: nothing changes after `init`, which links the types.

  /// Metadata of a file's types from a descriptor set, by their full names.
  struct Metadata {
    struct Message {
      var isMapEntry: Bool
      /// The oneofs in the order of the proto file, with the numbers of their members.
      var oneofs: [(name: String, members: [Int32])]
      var jsonNames: [String: String]
    }

    var messages: [String: Message]
    var enums: [String: EnumSchema]
  }

  /// Messages by their full names.
  let messages: [String: MessageSchema]
  /// A message whose JSON names and maps are unknown; nil if there is none.
  let messageWithoutMetadata: String?
  /// The graph with the types of messages in `google.protobuf.Any`; nil if it is this graph.
  let typesOfAny: SchemaGraph?
  // Owns the targets of the links between types and fields.
  private let schemas: [MessageDescriptorPointer: MessageSchema]
  private let enums: [String: EnumSchema]
  /// The memory of descriptors that were made at run time.
  private let memory: DescriptorMemory?
  private let tables: MessageTables

  /// - Parameter metadata: With nil, JSON names are the defaults and no message is a map entry.
  init(
    _ roots: [MessageDescriptorPointer],
    metadata: Metadata?,
    typesOfAny: SchemaGraph? = nil,
    memory: DescriptorMemory? = nil
  ) {
    let tables = MessageTables()
    var schemas: [MessageDescriptorPointer: MessageSchema] = [:]
    var messages: [String: MessageSchema] = [:]
    var enums: [String: EnumSchema] = [:]
    var open = roots.map { tables.table(of: $0) }
    while let table = open.popLast() {
      if schemas[table.descriptor] != nil { continue }
      let known = metadata?.messages[table.name]
      let schema = MessageSchema(table, isMapEntry: known?.isMapEntry ?? false, oneofs: known?.oneofs ?? []) {
        known?.jsonNames[$0]
      }
      table.link(to: schema)
      schemas[table.descriptor] = schema
      if messages[schema.name] == nil { messages[schema.name] = schema }
      for field in table.fields {
        if let inner = field.table { open.append(inner) }
        guard let type = field.enumDescriptor, let name = field.typeName, enums[name] == nil else { continue }
        enums[name] = metadata?.enums[name] ?? EnumSchema(type.pointee)
      }
    }
    for schema in schemas.values {
      for field in schema.fields {
        field.link(enumeration: field.kind == .enumeration ? field.typeName.flatMap { enums[$0] } : nil)
      }
    }
    self.schemas = schemas
    self.messages = messages
    self.enums = enums
    self.messageWithoutMetadata = messages.keys.first { metadata?.messages[$0] == nil }
    self.typesOfAny = typesOfAny
    self.memory = memory
    self.tables = tables
    self.markMaps()
  }

  private func markMaps() {
    var owners = Owners<MessageDescriptorPointer>()
    var withMaps: [MessageDescriptorPointer] = []
    for (descriptor, schema) in self.schemas {
      if schema.fields.contains(where: \.isMap) { withMaps.append(descriptor) }
      for field in schema.fields {
        if let inner = field.table { owners.add(descriptor, of: inner.descriptor) }
      }
    }
    for descriptor in owners.reached(from: withMaps) { self.schemas[descriptor]?.markAsContainingMaps() }
  }
}

extension SchemaGraph {
  /// The name of a field that differs between the two graphs; nil if there is none. Reasons are a changed proto file,
  /// or an option of protoc-c.
  func fieldThatDiffers(from other: SchemaGraph) -> String? {
    for (name, message) in self.messages {
      guard let other = other.messages[name] else { continue }
      let field = message.fields.first { field in
        guard let other = other.field(number: field.number) else { return true }
        return other.name != field.name || other.kind != field.kind
          || other.isRepeated != field.isRepeated
      }
      if let field { return "\(name).\(field.name)" }
    }
    return nil
  }
}
