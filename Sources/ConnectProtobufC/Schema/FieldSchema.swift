internal import CProtobufC

/// What a field is, from libprotobuf-c's descriptor and, where there is one, from the proto file's.
final class FieldSchema: @unchecked Sendable {
  // Safe to share: the links are set once, while the graph is built, before others see them.

  enum Cardinality {
    /// Without presence: not set is the same as zero or empty.
    case implicit
    case optional
    case required
    case repeated
  }

  let descriptor: UnsafePointer<ProtobufCFieldDescriptor>
  let name: String
  let jsonName: String
  let jsonNameBytes: [UInt8]
  /// The start of a member of a JSON object: `"name":`, with either name.
  let jsonKey: [UInt8]
  let originalJSONKey: [UInt8]
  let number: UInt32
  /// As the proto file has it: a string stays one, though its C type may be bytes.
  let kind: FieldKind
  let isStringAsBytes: Bool
  let cardinality: Cardinality
  let isOneofMember: Bool
  let offset: Int
  /// Of the count of a repeated field, of the case of a oneof's member, of whether an optional one is there; 0 if there
  /// is none.
  let quantifierOffset: Int
  /// The type's full name, for messages and enums.
  let typeName: String?

  /// How to find out whether a message has the field.
  let slot: FieldSlot

  private struct Links {
    unowned(unsafe) var message: MessageSchema?
    unowned(unsafe) var enumeration: EnumSchema?
    var isMap = false
  }

  /// Not in the object itself, where each use of a variable costs a check for others'.
  private let links: UnsafeMutablePointer<Links>

  /// Owned by the graph that owns this field.
  var message: MessageSchema? { self.links.pointee.message }
  /// Owned by the graph that owns this field.
  var enumeration: EnumSchema? { self.links.pointee.enumeration }
  /// A repeated message whose two fields are key and value.
  var isMap: Bool { self.links.pointee.isMap }

  init(_ descriptor: UnsafePointer<ProtobufCFieldDescriptor>, jsonName: String?) {
    let field = descriptor.pointee
    self.descriptor = descriptor
    self.name = String(cString: field.name)
    self.jsonName = jsonName ?? Self.defaultJSONName(self.name)
    self.jsonKey = JSONWriter.key(self.jsonName)
    self.jsonNameBytes = Array(self.jsonName.utf8)
    self.originalJSONKey = JSONWriter.key(self.name)
    self.number = field.id
    self.isStringAsBytes = field.isStringAsBytes
    self.kind = field.isStringAsBytes ? .string : field.kind
    self.isOneofMember = field.isOneofMember
    self.offset = Int(field.offset)
    self.quantifierOffset = Int(field.quantifier_offset)
    self.cardinality =
      switch field.label {
      case PROTOBUF_C_LABEL_REPEATED: .repeated
      case PROTOBUF_C_LABEL_REQUIRED: .required
      case PROTOBUF_C_LABEL_OPTIONAL: .optional
      default: .implicit
      }
    switch self.kind {
    case .message:
      self.typeName = field.messageDescriptor?.fullName
    case .enumeration:
      let type = field.descriptor?.assumingMemoryBound(to: ProtobufCEnumDescriptor.self)
      self.typeName = type.map { String(cString: $0.pointee.name) }
    default:
      self.typeName = nil
    }
    self.slot = FieldSlot(field, self.cardinality)
    self.links = .allocate(capacity: 1)
    self.links.initialize(to: Links())
  }

  deinit {
    self.links.deallocate()
  }

  func link(message: MessageSchema?, enumeration: EnumSchema?) {
    let isMap = self.cardinality == .repeated && message?.isMapEntry == true
    self.links.pointee = Links(message: message, enumeration: enumeration, isMap: isMap)
  }

  /// The kind of the value in memory.
  var storedKind: FieldKind { self.isStringAsBytes ? .bytes : self.kind }

  /// The bytes of one value in the struct or in an array.
  var valueSize: Int { self.storedKind.size }

  /// lowerCamelCase as protoc makes it: a letter after an underscore in upper case, without the underscores.
  static func defaultJSONName(_ name: String) -> String {
    var result = ""
    var isUpper = false
    for character in name.utf8 {
      if character == UInt8(ascii: "_") {
        isUpper = true
        continue
      }
      let isLowerLetter = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(character)
      result.unicodeScalars.append(Unicode.Scalar(isUpper && isLowerLetter ? character - 32 : character))
      isUpper = false
    }
    return result
  }
}

/// The values of an enum.
final class EnumSchema: Sendable {
  let name: String
  /// With aliases.
  let numbers: [String: Int32]
  /// The first name of each number.
  let names: [Int32: String]
  /// What a field that is not there has.
  let firstNumber: Int32

  /// `values` in the order of the proto file.
  init(name: String, values: [(name: String, number: Int32)]) {
    self.name = name
    self.firstNumber = values.first?.number ?? 0
    self.numbers = Dictionary(values.map { ($0.name, $0.number) }) { first, _ in first }
    self.names = Dictionary(values.map { ($0.number, $0.name) }) { first, _ in first }
  }

  var isNullValue: Bool { self.name == "google.protobuf.NullValue" }
}
