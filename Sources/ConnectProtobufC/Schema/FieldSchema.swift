internal import CProtobufC

/// What a field is: its number and type, where its values are in the struct, and how to see whether a message has it.
///
/// The one description for decoding, for JSON and for access by name. It is a reference of one word: reading takes no
/// reference counting.
///
/// Invariant: `record` points to an initialised record in the memory of a ``MessageTables``. The record changes only
/// while its graph is built, before others see it, so fields are safe to share. Whoever has a field keeps the tables:
/// those of protoc-c's structs stay for good, others belong to a ``SchemaGraph``.
struct FieldSchema: @unchecked Sendable, Equatable {
  enum Form: UInt8 {
    /// Not set is the same as zero, or a null pointer.
    case plain
    /// With a flag for whether it is there.
    case flagged
    /// With the number of the member that is set.
    case oneofMember
    case repeated
  }

  /// How to see in a struct whether the field is there.
  enum Presence: UInt8 {
    /// The oneof's case is the field's number.
    case selected
    /// A count or a flag is not zero.
    case counted, flagged
    /// The value is not zero.
    case nonZero4, nonZero8
    case nonEmptyString, nonEmptyBytes
    /// The pointer is not null and not the default value.
    case pointer
    case always
  }

  struct Record {
    let number: UInt32
    let offset: UInt32
    let quantifierOffset: UInt32
    let kind: FieldKind
    let storedKind: FieldKind
    let form: Form
    let presence: Presence
    let wireType: UInt8
    let isRequired: Bool
    let isCounted: Bool
    var isMap = false
    let impliedValue: UnsafeRawPointer?
    let descriptor: UnsafePointer<ProtobufCFieldDescriptor>
    let table: MessageTable?
    // Not `unowned(unsafe)`: generic code of debug builds does not copy a struct that has such a reference.
    var enumeration: Unmanaged<EnumSchema>?
  }

  private let record: UnsafeMutablePointer<Record>

  init(_ record: UnsafeMutablePointer<Record>) {
    self.record = record
  }

  // MARK: Type

  @inline(__always) var number: UInt32 { self.record.pointee.number }

  /// As the proto file has it: a string stays one, though its C type may be bytes.
  @inline(__always) var kind: FieldKind { self.record.pointee.kind }

  /// Of the value in memory.
  @inline(__always) var storedKind: FieldKind { self.record.pointee.storedKind }

  @inline(__always) var wireType: UInt8 { self.record.pointee.wireType }
  @inline(__always) var form: Form { self.record.pointee.form }
  @inline(__always) var isRepeated: Bool { self.form == .repeated }
  @inline(__always) var isOneofMember: Bool { self.form == .oneofMember }
  @inline(__always) var isStringAsBytes: Bool { self.kind != self.storedKind }
  @inline(__always) var isRequired: Bool { self.record.pointee.isRequired }

  /// Required, and not to be seen in the struct whether it is set: it has to be in each piece of a message.
  @inline(__always) var isCounted: Bool { self.record.pointee.isCounted }

  /// A repeated message whose two fields are key and value.
  @inline(__always) var isMap: Bool { self.record.pointee.isMap }

  /// The type of a message.
  @inline(__always) var table: MessageTable? { self.record.pointee.table }

  /// The type of a message, owned by the graph that owns this field; nil if no graph does.
  var message: MessageSchema? { self.record.pointee.table?.schema }

  /// Owned by the graph that owns this field.
  var enumeration: EnumSchema? { self.record.pointee.enumeration?.takeUnretainedValue() }

  // MARK: Place

  @inline(__always) var offset: Int { Int(self.record.pointee.offset) }

  /// Where the flag, the case or the count is that ``form`` says.
  @inline(__always) var quantifierOffset: Int { Int(self.record.pointee.quantifierOffset) }

  @inline(__always) var presence: Presence { self.record.pointee.presence }

  /// The bytes of one value in the struct or in an array.
  @inline(__always) var valueSize: Int { self.storedKind.size }

  /// For ``Presence/pointer``: a pointer that, as null does, says that the field is not there.
  @inline(__always) var impliedValue: UnsafeRawPointer? { self.record.pointee.impliedValue }

  /// What the field holds in an empty message; nil for zero.
  var defaultValue: UnsafeRawPointer? { self.descriptor.pointee.default_value }

  // MARK: Names

  /// libprotobuf-c's description of the field.
  var descriptor: UnsafePointer<ProtobufCFieldDescriptor> { self.record.pointee.descriptor }

  /// Of an enum.
  var enumDescriptor: UnsafePointer<ProtobufCEnumDescriptor>? {
    self.kind == .enumeration ? self.descriptor.pointee.enumDescriptor : nil
  }

  var name: String { String(cString: self.descriptor.pointee.name) }

  /// The type's full name, for messages and enums.
  var typeName: String? {
    switch self.kind {
    case .message: self.descriptor.pointee.messageDescriptor?.fullName
    case .enumeration: self.enumDescriptor.map { String(cString: $0.pointee.name) }
    default: nil
    }
  }

  // MARK: Links

  /// Completes the field when all types of its graph are there, before others see it.
  func link(enumeration: EnumSchema?) {
    self.record.pointee.enumeration = enumeration.map { Unmanaged.passUnretained($0) }
    self.record.pointee.isMap = self.isRepeated && self.message?.isMapEntry == true
  }
}

extension FieldSchema.Record {
  /// - Parameter table: Of the type of a message.
  init(_ descriptor: UnsafePointer<ProtobufCFieldDescriptor>, table: MessageTable?) {
    let field = descriptor.pointee
    let storedKind = field.kind
    let isRequired = field.label == PROTOBUF_C_LABEL_REQUIRED
    self.number = field.id
    self.offset = field.offset
    self.quantifierOffset = field.quantifier_offset
    self.kind = field.isStringAsBytes ? .string : storedKind
    self.storedKind = storedKind
    self.form =
      if field.isRepeated {
        .repeated
      } else if field.isOneofMember {
        .oneofMember
      } else {
        field.quantifier_offset != 0 ? .flagged : .plain
      }
    self.presence = FieldSchema.Presence(field, form: self.form)
    self.wireType = UInt8(truncatingIfNeeded: storedKind.wireType)
    self.isRequired = isRequired
    self.isCounted = isRequired && field.quantifier_offset == 0 && storedKind != .message
    // Of a field without presence, the default is the empty string, which a null pointer stands for as well. A required
    // one that is the default is written.
    self.impliedValue = field.label == PROTOBUF_C_LABEL_OPTIONAL ? field.default_value : nil
    self.descriptor = descriptor
    self.table = table
    self.enumeration = nil
  }
}

extension FieldSchema.Presence {
  fileprivate init(_ field: ProtobufCFieldDescriptor, form: FieldSchema.Form) {
    let kind = field.kind
    self =
      switch (form, field.label) {
      case (.repeated, _): .counted
      case (.oneofMember, _): .selected
      case (.flagged, PROTOBUF_C_LABEL_REQUIRED), (.flagged, PROTOBUF_C_LABEL_OPTIONAL): .flagged
      case (.plain, PROTOBUF_C_LABEL_REQUIRED): kind == .message || kind == .string ? .pointer : .always
      case (.plain, PROTOBUF_C_LABEL_OPTIONAL): .pointer
      default:
        switch kind {
        case .string: .nonEmptyString
        case .bytes: .nonEmptyBytes
        case .message: .pointer
        default: kind.size == 4 ? .nonZero4 : .nonZero8
        }
      }
  }
}
