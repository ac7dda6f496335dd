internal import CProtobufC

/// The struct of one message.
///
/// Invariant: `address` points to an initialised struct. Whoever has this value keeps the struct's memory, mostly with
/// its ``MessageStorage``. All fields given to this value are fields of the struct's type. A message that others can
/// see, or that was borrowed, is only read.
struct MessagePointer: Equatable {
  let address: UnsafeMutableRawPointer

  @inline(__always)
  init(_ address: UnsafeMutableRawPointer) {
    self.address = address
  }

  /// A message that is only read.
  @inline(__always)
  init(reading address: UnsafeRawPointer) {
    self.address = UnsafeMutableRawPointer(mutating: address)
  }

  /// Every message begins with its descriptor; nil if C code has not initialised it.
  @inline(__always) var descriptor: MessageDescriptorPointer? {
    self.address.load(as: MessageDescriptorPointer?.self)
  }

  /// What all messages have.
  @inline(__always) var base: UnsafeMutablePointer<ProtobufCMessage> {
    self.address.assumingMemoryBound(to: ProtobufCMessage.self)
  }

  // MARK: Presence

  /// Whether the field is set, if it has presence; else, whether it is not zero and not empty. So it would be written,
  /// but for -0.0, which libprotobuf-c leaves out.
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

  /// The number of the member that is set of a oneof that `field` is in; 0 if none is.
  @inline(__always)
  func oneofCase(of field: FieldSchema) -> UInt32 {
    (self.address + field.quantifierOffset).load(as: UInt32.self)
  }

  /// Whether a oneof's member is the one that is set.
  @inline(__always)
  func isSelected(_ field: FieldSchema) -> Bool {
    self.oneofCase(of: field) == field.number
  }

  /// Whether the flag of a field that has one says that it is there.
  @inline(__always)
  func isFlagged(_ field: FieldSchema) -> Bool {
    (self.address + field.quantifierOffset).load(as: Int32.self) != 0
  }

  /// Marks a field as there after its value was written; counts one more value of a repeated field.
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

  /// Marks a field that is not repeated as there; the caller then writes its value. Unselects other members of its
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

  /// Sets the field to what it is in an empty message.
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

  /// Where the value of a field is, or the array of a repeated one.
  @inline(__always)
  func place(of field: FieldSchema) -> FieldPlace {
    FieldPlace(of: field, at: self.address + field.offset)
  }

  /// The count of a repeated field, whatever it is.
  @inline(__always)
  func storedCount(of field: FieldSchema) -> Int {
    (self.address + field.quantifierOffset).load(as: Int.self)
  }

  /// The array of a repeated field.
  @inline(__always)
  func array(of field: FieldSchema) -> UnsafeMutableRawPointer? {
    (self.address + field.offset).load(as: UnsafeMutableRawPointer?.self)
  }

  /// - Parameter array: Has `count` values of the field.
  @inline(__always)
  func setArray(_ array: UnsafeMutableRawPointer?, count: Int, of field: FieldSchema) {
    self.setCount(count, of: field)
    self.setArray(array, of: field)
  }

  /// - Parameter array: Has as many values as the field's count says, and has room for more that may follow.
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
