internal import CProtobufC

/// Tells whether a message has a field, without a look at the field's ``FieldSchema``: most fields of most messages are
/// not there.
struct FieldSlot {
  private enum Presence: UInt8 {
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

  private let presence: Presence
  private let offset: UInt32
  private let quantifierOffset: UInt32
  private let number: UInt32
  private nonisolated(unsafe) let defaultValue: UnsafeRawPointer?

  init(_ field: ProtobufCFieldDescriptor, _ cardinality: FieldSchema.Cardinality) {
    self.offset = field.offset
    self.quantifierOffset = field.quantifier_offset
    self.number = field.id
    // Of a field without presence, the default is the empty string, which a null pointer stands for as well. A required
    // one that is the default is written.
    self.defaultValue = cardinality == .optional ? field.default_value : nil
    let kind = field.kind
    self.presence =
      if field.isOneofMember {
        .selected
      } else {
        switch cardinality {
        case .repeated: .counted
        case .required where field.quantifier_offset == 0:
          kind == .message || kind == .string ? .pointer : .always
        case .optional, .required: field.quantifier_offset != 0 ? .flagged : .pointer
        case .implicit:
          switch kind {
          case .string: .nonEmptyString
          case .bytes: .nonEmptyBytes
          case .message: .pointer
          default: kind.size == 4 ? .nonZero4 : .nonZero8
          }
        }
      }
  }

  /// Whether the field is set, if it has presence; else, whether it is not zero and not empty. So it would be written,
  /// but for -0.0, which libprotobuf-c leaves out.
  @inline(__always)
  func isPresent(in message: UnsafeRawPointer) -> Bool {
    let place = message + Int(self.offset)
    let quantifier = message + Int(self.quantifierOffset)
    switch self.presence {
    case .selected: return quantifier.load(as: UInt32.self) == self.number
    case .counted: return quantifier.load(as: Int.self) > 0
    case .flagged: return quantifier.load(as: Int32.self) != 0
    case .nonZero4: return place.load(as: UInt32.self) != 0
    case .nonZero8: return place.load(as: UInt64.self) != 0
    case .nonEmptyString: return place.load(as: UnsafePointer<UInt8>?.self).map { $0.pointee != 0 } ?? false
    case .nonEmptyBytes: return place.load(as: ProtobufCBinaryData.self).len > 0
    case .pointer:
      let pointer = place.load(as: UnsafeRawPointer?.self)
      return pointer != nil && pointer != self.defaultValue
    case .always: return true
    }
  }
}
