internal import CProtobufC

/// The struct of one message.
///
/// Invariant: `address` points to an initialised struct. Users of this value keep the struct's memory, mostly with its
/// ``MessageStorage``. All fields passed to this value are fields of the struct's type. A message that others can see,
/// or that was borrowed, is only read.
struct MessagePointer: Equatable {
  let address: UnsafeMutableRawPointer

  @inline(__always)
  init(_ address: UnsafeMutableRawPointer) {
    self.address = address
  }

  /// A message for reading only.
  @inline(__always)
  init(reading address: UnsafeRawPointer) {
    self.address = UnsafeMutableRawPointer(mutating: address)
  }

  /// The descriptor that every message begins with; nil if C code has not initialised the message.
  @inline(__always) var descriptor: MessageDescriptorPointer? {
    self.address.load(as: MessageDescriptorPointer?.self)
  }

  /// The part that all messages have.
  @inline(__always) var base: UnsafeMutablePointer<ProtobufCMessage> {
    self.address.assumingMemoryBound(to: ProtobufCMessage.self)
  }

  // MARK: Presence

  /// Whether the field is set, if it has presence; else, whether it is not zero and not empty. A field for which this
  /// is true is encoded, except for -0.0, which libprotobuf-c leaves out.
  @inline(__always)
  func has(_ field: FieldSchema) -> Bool {
    let place = self.address + field.offset
    let quantifier = self.address + field.quantifierOffset
    switch field.presence {
    case .selected: return quantifier.load(as: UInt32.self) == field.number
    case .counted: return quantifier.load(as: Int.self) > 0
    case .flagged: return quantifier.load(as: Int32.self) != 0
    case .nonZero4: return place.load(as: UInt32.self) != 0
    case .nonZero8: return place.load(as: UInt64.self) != 0
    case .nonEmptyString: return place.load(as: UnsafePointer<UInt8>?.self).map { $0.pointee != 0 } ?? false
    case .nonEmptyBytes: return place.load(as: ProtobufCBinaryData.self).len > 0
    case .pointer:
      let pointer = place.load(as: UnsafeRawPointer?.self)
      return pointer != nil && pointer != field.impliedValue
    case .always: return true
    }
  }

  /// The field number of the set member in the oneof of `field`; 0 if no member is set.
  @inline(__always)
  func oneofCase(of field: FieldSchema) -> UInt32 {
    (self.address + field.quantifierOffset).load(as: UInt32.self)
  }

  /// Whether this member of a oneof is the set one.
  @inline(__always)
  func isSelected(_ field: FieldSchema) -> Bool {
    self.oneofCase(of: field) == field.number
  }

  /// Whether a field with a presence flag is present.
  @inline(__always)
  func isFlagged(_ field: FieldSchema) -> Bool {
    (self.address + field.quantifierOffset).load(as: Int32.self) != 0
  }

  /// Marks a field as present after its value was written. For a repeated field, counts one more value.
  @inline(__always)
  func countValue(of field: FieldSchema) {
    let quantifier = self.address + field.quantifierOffset
    switch field.form {
    case .plain: break
    case .flagged: quantifier.storeBytes(of: 1, as: Int32.self)
    case .oneofMember: quantifier.storeBytes(of: field.number, as: UInt32.self)
    case .repeated: quantifier.storeBytes(of: quantifier.load(as: Int.self) + 1, as: Int.self)
    }
  }

  /// Marks a field that is not repeated as present; the caller then writes its value. Unselects other members of its
  /// oneof.
  func select(_ field: FieldSchema) {
    let quantifier = self.address + field.quantifierOffset
    switch field.form {
    case .oneofMember:
      quantifier.storeBytes(of: field.number, as: UInt32.self)
      self.place(of: field).zero()
    case .flagged: quantifier.storeBytes(of: 1, as: Int32.self)
    case .plain, .repeated: break
    }
  }

  /// Sets the field to its value in an empty message.
  func clear(_ field: FieldSchema) {
    let quantifier = self.address + field.quantifierOffset
    switch field.form {
    case .oneofMember:
      guard self.isSelected(field) else { return }
      quantifier.storeBytes(of: 0, as: UInt32.self)
      self.place(of: field).zero()
    case .repeated:
      self.setArray(nil, count: 0, of: field)
    case .flagged:
      quantifier.storeBytes(of: 0, as: Int32.self)
      self.place(of: field).setToDefault()
    case .plain:
      self.place(of: field).setToDefault()
    }
  }

  // MARK: Values

  /// The location of the field's value, or of the pointer to a repeated field's array.
  @inline(__always)
  func place(of field: FieldSchema) -> FieldPlace {
    FieldPlace(of: field, at: self.address + field.offset)
  }

  /// The count of a repeated field, even if it is invalid.
  @inline(__always)
  func storedCount(of field: FieldSchema) -> Int {
    (self.address + field.quantifierOffset).load(as: Int.self)
  }

  /// The array of a repeated field.
  @inline(__always)
  func array(of field: FieldSchema) -> UnsafeMutableRawPointer? {
    (self.address + field.offset).load(as: UnsafeMutableRawPointer?.self)
  }

  /// - Parameter array: An array with `count` values of the field.
  @inline(__always)
  func setArray(_ array: UnsafeMutableRawPointer?, count: Int, of field: FieldSchema) {
    self.setCount(count, of: field)
    self.setArray(array, of: field)
  }

  /// - Parameter array: An array with as many values as the field's count says, and possibly room for more.
  @inline(__always)
  func setArray(_ array: UnsafeMutableRawPointer?, of field: FieldSchema) {
    (self.address + field.offset).storeBytes(of: array, as: UnsafeMutableRawPointer?.self)
  }

  @inline(__always)
  func setCount(_ count: Int, of field: FieldSchema) {
    (self.address + field.quantifierOffset).storeBytes(of: count, as: Int.self)
  }

  /// The values of a repeated field; none if C code left a count without an array.
  @inline(__always)
  func elements(of field: FieldSchema) -> FieldElements {
    guard let array = self.array(of: field) else {
      return FieldElements(of: field, array: self.address, count: 0)
    }
    return FieldElements(of: field, array: array, count: max(0, self.storedCount(of: field)))
  }
}
