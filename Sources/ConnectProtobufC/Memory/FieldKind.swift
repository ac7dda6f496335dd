public import CProtobufC

/// A field's type, with the numbers of `ProtobufCType`.
enum FieldKind: UInt8 {
  case int32, sint32, sfixed32
  case int64, sint64, sfixed64
  case uint32, fixed32
  case uint64, fixed64
  case float, double
  case bool
  case enumeration
  case string, bytes
  case message

  @inline(__always)
  init(_ type: ProtobufCType) {
    // protoc-c writes no other number. Other numbers count here as a message without a descriptor, which is refused.
    self = UInt8(exactly: type.rawValue).flatMap(FieldKind.init(rawValue:)) ?? .message
  }

  /// The number of bytes of a value in a struct or an array.
  var size: Int {
    switch self {
    case .int32, .sint32, .sfixed32, .uint32, .fixed32, .float, .bool, .enumeration: 4
    case .int64, .sint64, .sfixed64, .uint64, .fixed64, .double: 8
    case .string, .message: MemoryLayout<UnsafeRawPointer>.size
    case .bytes: MemoryLayout<ProtobufCBinaryData>.size
    }
  }

  /// Whether repeated values may be encoded as one length-prefixed run.
  var isPackable: Bool {
    switch self {
    case .string, .bytes, .message: false
    default: true
    }
  }

  var wireType: UInt32 {
    switch self {
    case .int32, .sint32, .uint32, .int64, .sint64, .uint64, .bool, .enumeration: 0
    case .sfixed64, .fixed64, .double: 1
    case .string, .bytes, .message: 2
    case .sfixed32, .fixed32, .float: 5
    }
  }
}

typealias MessageDescriptorPointer = UnsafePointer<ProtobufCMessageDescriptor>

extension ProtobufCFieldDescriptor {
  /// The value of ``ProtobufCFieldDescriptor/reserved_flags`` for a string whose C type is bytes, in descriptors made
  /// at run time. Unlike a C string, such a string can contain a NUL.
  static let stringAsBytes: UInt32 = 1

  @inline(__always) var kind: FieldKind { FieldKind(self.type) }
  @inline(__always) var isRepeated: Bool { self.label == PROTOBUF_C_LABEL_REPEATED }
  @inline(__always) var isOneofMember: Bool { self.flags & PROTOBUF_C_FIELD_FLAG_ONEOF.rawValue != 0 }
  @inline(__always) var isStringAsBytes: Bool { self.reserved_flags == Self.stringAsBytes }

  var messageDescriptor: MessageDescriptorPointer? {
    self.descriptor?.assumingMemoryBound(to: ProtobufCMessageDescriptor.self)
  }

  var enumDescriptor: UnsafePointer<ProtobufCEnumDescriptor>? {
    self.descriptor?.assumingMemoryBound(to: ProtobufCEnumDescriptor.self)
  }
}

extension ProtobufCBinaryData {
  /// The bytes, valid as long as the message. Empty also if C code left a length without bytes.
  @usableFromInline
  var content: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: self.data, count: self.data == nil ? 0 : max(0, self.len))
  }
}

extension UnsafePointer<ProtobufCMessageDescriptor> {
  var fullName: String { String(cString: self.pointee.name) }

  /// The name of a field for error messages.
  func name(of field: UnsafePointer<ProtobufCFieldDescriptor>) -> String {
    "\(self.fullName).\(String(cString: field.pointee.name))"
  }

  var fieldPointers: some Sequence<UnsafePointer<ProtobufCFieldDescriptor>> {
    (0..<Int(self.pointee.n_fields)).lazy.map { self.pointee.fields + $0 }
  }
}
