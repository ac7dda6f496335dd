internal import CProtobufC
internal import Connect
internal import SwiftProtobuf

/// Makes libprotobuf-c's descriptors from a descriptor set, without protoc-c.
///
/// Invariant: everything that a descriptor points to is in `memory`, which has to be kept with the descriptors.
struct DescriptorBuilder {
  private typealias Field = Google_Protobuf_FieldDescriptorProto

  private struct Message {
    var proto: Google_Protobuf_DescriptorProto
    var features: Features
    var descriptor: UnsafeMutablePointer<ProtobufCMessageDescriptor>
  }

  private static let largestFieldNumber: Int32 = 536_870_911
  /// In bytes. A long package name, or a long name of a message with nested types, is part of many full names.
  private static let mostNames = 16 * 1024 * 1024
  /// In bytes. The work for each field takes time proportional to the name of its message.
  private static let longestName = 4096

  let memory = DescriptorMemory()
  private var bytesOfNames = 0
  private var messages: [String: Message] = [:]
  private var enumDescriptors: [String: UnsafeMutablePointer<ProtobufCEnumDescriptor>] = [:]
  /// Why messages cannot be used, by their names.
  private(set) var unusable: [String: String] = [:]
  private(set) var metadata = SchemaGraph.Metadata(messages: [:], enums: [:])

  init(_ set: Google_Protobuf_FileDescriptorSet) throws(ConnectError) {
    let names = Set(set.file.map(\.name))
    for file in set.file {
      if let missing = file.dependency.first(where: { !names.contains($0) }) {
        throw .misuse("\(file.name) imports \(missing), which the descriptor set lacks")
      }
      guard let features = Features(file) else {
        throw .misuse("\(file.name): the syntax '\(file.syntax)' is not supported")
      }
      for proto in file.enumType { try self.add(proto, in: file.package) }
      for proto in file.messageType {
        try self.add(proto, in: file.package, inheriting: features)
      }
      // The paths of the methods.
      for proto in file.service {
        let length = file.package.utf8.count + proto.name.utf8.count
        for method in proto.method { try self.countName(bytes: length + method.name.utf8.count) }
      }
    }
    for message in self.messages.values { try self.fill(message) }
    self.findUnusable()
  }

  /// The descriptors of usable messages.
  var descriptors: [MessageDescriptorPointer] {
    self.messages.filter { self.unusable[$0.key] == nil }.map { UnsafePointer($0.value.descriptor) }
  }

  /// Finds messages with a group, and messages that contain such messages.
  private mutating func findUnusable() {
    var unusable: [String: String] = [:]
    var owners = Owners<String>()
    for (name, message) in self.messages {
      // Once per message: its name may be long, and its fields many.
      if let group = message.proto.field.first(where: { self.isGroup($0, in: message) }) {
        unusable[name] = "\(name).\(group.name): libprotobuf-c has no groups"
        continue
      }
      for field in message.proto.field where field.type == .message {
        owners.add(name, of: self.key(of: field.typeName))
      }
    }
    _ = owners.reached(from: unusable.keys) { owner, inner in unusable[owner] = unusable[inner] }
    self.unusable = unusable
  }

  private func isGroup(_ field: Field, in message: Message) -> Bool {
    field.type == .group || field.type == .message && self.features(of: field, in: message).isDelimited
  }

  private func features(of field: Field, in message: Message) -> Features {
    message.features.overridden(by: field.options.hasFeatures ? field.options.features : nil)
  }

  // MARK: Names

  private mutating func fullName(_ name: String, in scope: String) throws(ConnectError) -> String {
    try self.countName(bytes: scope.utf8.count + name.utf8.count)
    let fullName = scope.isEmpty ? name : "\(scope).\(name)"
    guard !name.isEmpty, !fullName.utf8.contains(0) else {
      throw .misuse("'\(fullName)' is no name of a type")
    }
    guard self.messages[fullName] == nil, self.metadata.enums[fullName] == nil else {
      throw .misuse("\(fullName) is there twice")
    }
    return fullName
  }

  private mutating func countName(bytes: Int) throws(ConnectError) {
    guard bytes <= Self.longestName else {
      throw .misuse("a full name in the descriptor set takes more than \(Self.longestName) bytes")
    }
    self.bytesOfNames += bytes
    guard self.bytesOfNames <= Self.mostNames else {
      throw .misuse("the descriptor set's names take more than \(Self.mostNames) bytes")
    }
  }

  private mutating func add(_ proto: Google_Protobuf_EnumDescriptorProto, in scope: String)
    throws(ConnectError)
  {
    let name = try self.fullName(proto.name, in: scope)
    self.metadata.enums[name] = EnumSchema(name: name, values: proto.value.map { ($0.name, $0.number) })
    var descriptor = ProtobufCEnumDescriptor()
    descriptor.magic = UInt32(PROTOBUF_C__ENUM_DESCRIPTOR_MAGIC)
    descriptor.name = self.memory.string(name)
    self.enumDescriptors[name] = self.memory.one(descriptor)
  }

  private mutating func add(
    _ proto: Google_Protobuf_DescriptorProto,
    in scope: String,
    inheriting outerFeatures: Features
  ) throws(ConnectError) {
    let name = try self.fullName(proto.name, in: scope)
    let features = outerFeatures.overridden(by: proto.options.hasFeatures ? proto.options.features : nil)
    var descriptor = ProtobufCMessageDescriptor()
    descriptor.magic = UInt32(PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC)
    descriptor.name = self.memory.string(name)
    descriptor.short_name = self.memory.string(proto.name)
    descriptor.c_name = descriptor.name
    descriptor.package_name = self.memory.string(scope)
    self.messages[name] = Message(proto: proto, features: features, descriptor: self.memory.one(descriptor))
    self.metadata.messages[name] = SchemaGraph.Metadata.Message(
      isMapEntry: proto.options.mapEntry,
      oneofs: Self.oneofs(of: proto),
      jsonNames: Dictionary(proto.field.filter(\.hasJsonName).map { ($0.name, $0.jsonName) }) { first, _ in
        first
      }
    )
    for inner in proto.enumType { try self.add(inner, in: name) }
    for inner in proto.nestedType { try self.add(inner, in: name, inheriting: features) }
  }

  /// The members of each oneof, by their numbers; leaves out oneofs that stand for `optional`.
  private static func oneofs(of proto: Google_Protobuf_DescriptorProto) -> [(name: String, members: [Int32])]
  {
    let members = Dictionary(
      grouping: proto.field.lazy.filter { $0.hasOneofIndex && !$0.proto3Optional },
      by: \.oneofIndex
    )
    return proto.oneofDecl.enumerated().compactMap { index, oneof in
      members[Int32(index)].map { (oneof.name, $0.map(\.number)) }
    }
  }

  /// The key of a type name. protoc writes type names in full, with a dot in front.
  private func key(of typeName: String) -> String {
    typeName.hasPrefix(".") ? String(typeName.dropFirst()) : typeName
  }

  // MARK: Fields

  private func fill(_ message: Message) throws(ConnectError) {
    let name = UnsafePointer(message.descriptor).fullName
    let protos = message.proto.field.sorted { $0.number < $1.number }
    var layout = StructLayout()
    var oneofs: [Int32: (offset: Int, caseOffset: Int)] = [:]
    var fields: [ProtobufCFieldDescriptor] = []
    var names: Set<String> = []
    for proto in protos {
      let isRepeatedNumber = fields.last.map { $0.id == UInt32(bitPattern: proto.number) } ?? false
      guard proto.number >= 1, proto.number <= Self.largestFieldNumber, !isRepeatedNumber else {
        throw .misuse("\(name).\(proto.name): the field number \(proto.number) cannot be used")
      }
      guard !proto.name.utf8.contains(0), names.insert(proto.name).inserted else {
        throw .misuse("\(name).\(proto.name): a name that cannot be used")
      }
      var field = try self.field(proto, of: message, named: name)
      let kind = field.kind
      if proto.hasOneofIndex, !proto.proto3Optional {
        // protoc does not make such a field. The count of a repeated field would be where the oneof has its case.
        guard proto.label == .optional, field.label != PROTOBUF_C_LABEL_REQUIRED else {
          throw .misuse("\(name).\(proto.name): a member of a oneof cannot be repeated or required")
        }
        // Room for a value of any kind.
        let place =
          oneofs[proto.oneofIndex]
          ?? (layout.add(FieldKind.bytes.size, alignment: 8), layout.add(4, alignment: 4))
        oneofs[proto.oneofIndex] = place
        field.offset = UInt32(place.offset)
        field.quantifier_offset = UInt32(place.caseOffset)
        field.flags |= PROTOBUF_C_FIELD_FLAG_ONEOF.rawValue
        // Members share memory, where the default value of one member would be mistaken for the value of another.
        field.default_value = nil
      } else if proto.label == .repeated {
        field.quantifier_offset = UInt32(layout.add(MemoryLayout<Int>.size, alignment: 8))
        field.offset = UInt32(layout.add(MemoryLayout<UnsafeRawPointer>.size, alignment: 8))
      } else {
        // protoc-c has no flag for required fields, and libprotobuf-c does not look for one.
        if field.label != PROTOBUF_C_LABEL_NONE, kind != .message {
          field.quantifier_offset = UInt32(layout.add(4, alignment: 4))
        }
        field.offset = UInt32(layout.add(kind))
      }
      fields.append(field)
    }
    let descriptor = message.descriptor
    descriptor.pointee.sizeof_message = layout.add(0, alignment: 8)
    descriptor.pointee.n_fields = UInt32(fields.count)
    descriptor.pointee.fields = UnsafePointer(self.memory.array(of: fields))
    let byName = fields.indices.sorted {
      protos[$0].name.utf8.lexicographicallyPrecedes(protos[$1].name.utf8)
    }
    descriptor.pointee.fields_sorted_by_name = UnsafePointer(self.memory.array(of: byName.map(UInt32.init)))
    let ranges = Self.ranges(of: fields)
    descriptor.pointee.n_field_ranges = UInt32(max(0, ranges.count - 1))
    descriptor.pointee.field_ranges = UnsafePointer(self.memory.array(of: ranges))
  }

  /// Runs of consecutive numbers, and a last entry that marks the end of the last run.
  private static func ranges(of fields: [ProtobufCFieldDescriptor]) -> [ProtobufCIntRange] {
    var ranges: [ProtobufCIntRange] = []
    for (index, field) in fields.enumerated() where index == 0 || fields[index - 1].id + 1 != field.id {
      ranges.append(ProtobufCIntRange(start_value: Int32(field.id), orig_index: UInt32(index)))
    }
    if !ranges.isEmpty { ranges.append(ProtobufCIntRange(start_value: 0, orig_index: UInt32(fields.count))) }
    return ranges
  }

  /// The descriptor of a field, without offsets.
  private func field(
    _ proto: Field,
    of message: Message,
    named name: String
  ) throws(ConnectError) -> ProtobufCFieldDescriptor {
    var field = ProtobufCFieldDescriptor()
    field.name = self.memory.string(proto.name)
    field.id = UInt32(bitPattern: proto.number)
    field.type = try Self.type(of: proto, in: name)
    // A C string could not contain a NUL.
    if proto.type == .string { field.reserved_flags = ProtobufCFieldDescriptor.stringAsBytes }
    let type = self.key(of: proto.typeName)
    if proto.type == .message {
      guard let inner = self.messages[type]?.descriptor else { throw Self.unknownType(of: proto, in: name) }
      field.descriptor = UnsafeRawPointer(inner)
    } else if proto.type == .enum {
      guard let inner = self.enumDescriptors[type] else { throw Self.unknownType(of: proto, in: name) }
      field.descriptor = UnsafeRawPointer(inner)
    }
    let features = self.features(of: proto, in: message)
    switch proto.label {
    case .repeated: field.label = PROTOBUF_C_LABEL_REPEATED
    case .required: field.label = PROTOBUF_C_LABEL_REQUIRED
    case .optional:
      let isMember = proto.hasOneofIndex && !proto.proto3Optional
      let hasPresence = features.presence != .implicit || proto.proto3Optional || proto.type == .message
      field.label = hasPresence && !isMember ? PROTOBUF_C_LABEL_OPTIONAL : PROTOBUF_C_LABEL_NONE
      if features.presence == .required, !isMember { field.label = PROTOBUF_C_LABEL_REQUIRED }
    }
    let isPacked = proto.options.hasPacked ? proto.options.packed : features.isPacked
    if proto.label == .repeated, field.kind.isPackable, isPacked {
      field.flags |= PROTOBUF_C_FIELD_FLAG_PACKED.rawValue
    }
    if proto.hasDefaultValue, proto.label != .repeated {
      field.default_value = try self.defaultValue(of: proto, type: type, in: name)
    } else if proto.type == .enum, proto.label != .repeated,
      let first = self.metadata.enums[type]?.firstNumber,
      first != 0
    {
      // The default is the enum's first value, which may differ from 0.
      field.default_value = UnsafeRawPointer(self.memory.one(first))
    }
    return field
  }

  private static func unknownType(of proto: Field, in message: String) -> ConnectError {
    .misuse("\(message).\(proto.name): the descriptor set lacks the type \(proto.typeName)")
  }

  private static func type(of proto: Field, in message: String) throws(ConnectError) -> ProtobufCType {
    switch proto.type {
    case .double: PROTOBUF_C_TYPE_DOUBLE
    case .float: PROTOBUF_C_TYPE_FLOAT
    case .int64: PROTOBUF_C_TYPE_INT64
    case .uint64: PROTOBUF_C_TYPE_UINT64
    case .int32: PROTOBUF_C_TYPE_INT32
    case .fixed64: PROTOBUF_C_TYPE_FIXED64
    case .fixed32: PROTOBUF_C_TYPE_FIXED32
    case .bool: PROTOBUF_C_TYPE_BOOL
    case .string, .bytes: PROTOBUF_C_TYPE_BYTES
    case .message: PROTOBUF_C_TYPE_MESSAGE
    case .uint32: PROTOBUF_C_TYPE_UINT32
    case .enum: PROTOBUF_C_TYPE_ENUM
    case .sfixed32: PROTOBUF_C_TYPE_SFIXED32
    case .sfixed64: PROTOBUF_C_TYPE_SFIXED64
    case .sint32: PROTOBUF_C_TYPE_SINT32
    case .sint64: PROTOBUF_C_TYPE_SINT64
    // Never used: the message is refused.
    case .group: PROTOBUF_C_TYPE_BYTES
    }
  }

  // MARK: Default values of proto2

  private func defaultValue(of proto: Field, type: String, in message: String) throws(ConnectError)
    -> UnsafeRawPointer
  {
    let text = proto.defaultValue
    func number<T>(_ value: T?) throws(ConnectError) -> UnsafeRawPointer {
      guard let value else {
        throw .misuse("\(message).\(proto.name): the default value '\(text)' cannot be used")
      }
      return UnsafeRawPointer(self.memory.one(value))
    }
    switch proto.type {
    case .double: return try number(Double(text))
    case .float: return try number(Float(text))
    case .int64, .sfixed64, .sint64: return try number(Int64(text))
    case .uint64, .fixed64: return try number(UInt64(text))
    case .int32, .sfixed32, .sint32: return try number(Int32(text))
    case .uint32, .fixed32: return try number(UInt32(text))
    case .bool: return try number(text == "true" ? Int32(1) : 0)
    case .enum: return try number(self.metadata.enums[type]?.numbers[text])
    case .string: return self.bytes(Array(text.utf8))
    case .bytes: return self.bytes(Self.unescaped(text))
    case .message, .group: return try number(Int32?.none)
    }
  }

  private func bytes(_ bytes: [UInt8]) -> UnsafeRawPointer {
    bytes.withUnsafeBytes { UnsafeRawPointer(self.memory.one(self.memory.arena.newBytes($0))) }
  }

  /// The content of a bytes default, which is written with C escapes.
  private static func unescaped(_ text: String) -> [UInt8] {
    let letters: [UInt8: UInt8] = [
      UInt8(ascii: "n"): 10, UInt8(ascii: "r"): 13, UInt8(ascii: "t"): 9,
    ]
    var result: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "\\"), let next = rest.first else {
        result.append(byte)
        continue
      }
      let digits = rest.prefix(3)
      if digits.count == 3, let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 8) {
        result.append(value)
        rest.removeFirst(3)
      } else {
        result.append(letters[next] ?? next)
        rest.removeFirst()
      }
    }
    return result
  }
}
