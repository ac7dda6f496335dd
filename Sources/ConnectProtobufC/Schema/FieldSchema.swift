internal import CProtobufC

/// A field's number and type, the location of its values in the struct, and how to detect its presence.
///
/// Decoding, JSON and access by name all use this description. It is a reference of one word: reading it needs no
/// reference counting.
///
/// Invariant: `record` points to an initialised record in the memory of a ``MessageTables``. The record changes only
/// while its graph is built, before others see it, so fields are safe to share. Users of a field keep the tables:
/// tables of protoc-c's structs are never freed, others belong to a ``SchemaGraph``.
struct FieldSchema: @unchecked Sendable, Equatable {
  enum Form: UInt8 {
    /// Absent is the same as zero or a null pointer.
    case plain
    /// With a presence flag.
    case flagged
    /// With the number of the set member.
    case oneofMember
    case repeated
  }

  /// How to detect in a struct whether the field is present.
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
    // Not `unowned(unsafe)`: in debug builds, generic code does not copy a struct with such a reference.
    var enumeration: Unmanaged<EnumSchema>?
  }

  private let record: UnsafeMutablePointer<Record>

  init(_ record: UnsafeMutablePointer<Record>) {
    self.record = record
  }

  // MARK: Type

  @inline(__always) var number: UInt32 { self.record.pointee.number }

  /// The kind in the proto file: a string is a string, even if its C type is bytes.
  @inline(__always) var kind: FieldKind { self.record.pointee.kind }

  /// The kind of the value in memory.
  @inline(__always) var storedKind: FieldKind { self.record.pointee.storedKind }

  @inline(__always) var wireType: UInt8 { self.record.pointee.wireType }
  @inline(__always) var form: Form { self.record.pointee.form }
  @inline(__always) var isRepeated: Bool { self.form == .repeated }
  @inline(__always) var isOneofMember: Bool { self.form == .oneofMember }
  @inline(__always) var isStringAsBytes: Bool { self.kind != self.storedKind }
  @inline(__always) var isRequired: Bool { self.record.pointee.isRequired }

  /// Whether decoding must count the field: it is required, but the struct does not show whether it is set. It has to
  /// be in each piece of a message.
  @inline(__always) var isCounted: Bool { self.record.pointee.isCounted }

  /// A repeated message whose two fields are key and value.
  @inline(__always) var isMap: Bool { self.record.pointee.isMap }

  /// The table of the field's message type.
  @inline(__always) var table: MessageTable? { self.record.pointee.table }

  /// The schema of the field's message type, owned by the graph that owns this field; nil if no graph does.
  var message: MessageSchema? { self.record.pointee.table?.schema }

  /// The schema of the field's enum, owned by the graph that owns this field.
  var enumeration: EnumSchema? { self.record.pointee.enumeration?.takeUnretainedValue() }

  // MARK: Layout

  @inline(__always) var offset: Int { Int(self.record.pointee.offset) }

  /// The offset of the presence flag, the oneof's case or the count, depending on ``form``.
  @inline(__always) var quantifierOffset: Int { Int(self.record.pointee.quantifierOffset) }

  @inline(__always) var presence: Presence { self.record.pointee.presence }

  /// Whether the field has no presence: absent is the same as zero or empty.
  var isImplicit: Bool {
    switch self.presence {
    case .counted, .nonZero4, .nonZero8, .nonEmptyString, .nonEmptyBytes: true
    case .selected, .flagged, .pointer, .always: false
    }
  }

  /// The number of bytes of one value in the struct or in an array.
  @inline(__always) var valueSize: Int { self.storedKind.size }

  /// For ``Presence/pointer``: a pointer that means, as null does, that the field is absent.
  @inline(__always) var impliedValue: UnsafeRawPointer? { self.record.pointee.impliedValue }

  /// The field's value in an empty message; nil for zero.
  var defaultValue: UnsafeRawPointer? { self.descriptor.pointee.default_value }

  // MARK: Names

  /// libprotobuf-c's description of the field.
  var descriptor: UnsafePointer<ProtobufCFieldDescriptor> { self.record.pointee.descriptor }

  /// The descriptor of the field's enum.
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

  /// Completes the field when all types of its graph exist, before others see it.
  func link(enumeration: EnumSchema?) {
    self.record.pointee.enumeration = enumeration.map { Unmanaged.passUnretained($0) }
    self.record.pointee.isMap = self.isRepeated && self.message?.isMapEntry == true
  }
}

extension FieldSchema.Record {
  /// - Parameter table: The table of the field's message type.
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
    // For a field without presence, the default is the empty string, which a null pointer also represents. A required
    // field is encoded even if it has the default value.
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
