internal import CProtobufC

/// The location of one value of a field: in a struct, or in the array of a repeated field.
///
/// Invariant: `address` points to a value of the field's stored kind, or to aligned memory for one. Users of the place
/// keep this memory and the memory that the value points to. A place is written to only while nobody else can see its
/// message.
struct FieldPlace {
  let field: FieldSchema
  private let address: UnsafeMutableRawPointer

  @inline(__always)
  init(of field: FieldSchema, at address: UnsafeMutableRawPointer) {
    self.field = field
    self.address = address
  }

  // MARK: Reading

  /// - Parameter type: The Swift type for the field's kind.
  @inline(__always)
  func load<Value: BitwiseCopyable>(as type: Value.Type) -> Value {
    assert(MemoryLayout<Value>.size == self.field.valueSize)
    return self.address.load(as: type)
  }

  /// The pointer that is the value of a string or a message.
  @inline(__always) var pointer: UnsafeMutableRawPointer? { self.load(as: UnsafeMutableRawPointer?.self) }

  @inline(__always) var message: MessagePointer? { self.pointer.map { MessagePointer($0) } }

  /// The message; nil if it is absent or not of the field's type.
  var checkedMessage: MessagePointer? {
    guard let message = self.message, message.descriptor == self.field.table?.descriptor else { return nil }
    return message
  }

  /// The bytes of a string, or bytes.
  var bytes: UnsafeRawBufferPointer {
    if self.field.storedKind == .bytes { return self.load(as: ProtobufCBinaryData.self).content }
    guard let text = self.pointer else { return UnsafeRawBufferPointer(start: nil, count: 0) }
    return UnsafeRawBufferPointer(start: text, count: CString.length(text))
  }

  /// The text of a string.
  var string: String { String(decoding: self.bytes, as: UTF8.self) }

  // MARK: Writing

  /// - Parameter value: A value of the Swift type for the field's kind.
  @inline(__always)
  func store<Value: BitwiseCopyable>(_ value: Value) {
    assert(MemoryLayout<Value>.size == self.field.valueSize)
    self.address.storeBytes(of: value, as: Value.self)
  }

  @inline(__always)
  func store(_ message: MessagePointer) {
    self.store(message.address)
  }

  /// Stores a copy of `bytes` in the form of the field.
  ///
  /// - Parameter bytes: Valid UTF-8 for a string; without NUL if the field is a C string.
  func store(_ bytes: UnsafeRawBufferPointer, in arena: Arena) {
    if self.field.storedKind == .bytes {
      self.store(arena.newBytes(bytes))
    } else {
      self.store(arena.newString(bytes))
    }
  }

  /// Copies the memory of `count` numbers to this place, which must have room for them.
  @inline(__always)
  func copyNumbers(from source: UnsafeRawPointer, count: Int = 1) {
    self.address.copyMemory(from: source, byteCount: count * self.field.valueSize)
  }

  /// A later place in an array.
  ///
  /// - Parameter size: The size of a value. Callers with loops compute it once.
  @inline(__always)
  func advanced(byBytes size: Int) -> FieldPlace {
    FieldPlace(of: self.field, at: self.address + size)
  }

  func zero() {
    self.address.initializeMemory(as: UInt8.self, repeating: 0, count: self.field.valueSize)
  }

  /// Stores the value that the field has in an empty message.
  func setToDefault() {
    guard let value = self.field.defaultValue else {
      self.zero()
      return
    }
    // The default of a C string or of a message is the pointer itself.
    if self.field.storedKind == .string || self.field.kind == .message {
      self.store(value)
    } else {
      self.address.copyMemory(from: value, byteCount: self.field.valueSize)
    }
  }
}
