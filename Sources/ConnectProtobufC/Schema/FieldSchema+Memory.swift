internal import CProtobufC
internal import NIOCore

/// Where a field's values are in a struct.
extension FieldSchema {
  /// Whether the message has the field; see ``FieldSlot/isPresent(in:)``.
  func isPresent(in message: UnsafeRawPointer) -> Bool { self.slot.isPresent(in: message) }

  /// Of a oneof's member.
  func isSelected(in message: UnsafeRawPointer) -> Bool {
    message.load(fromByteOffset: self.quantifierOffset, as: UInt32.self) == self.number
  }

  /// The number of values of a repeated field; 0 if there is no array.
  func count(in message: UnsafeRawPointer) -> Int {
    guard message.load(fromByteOffset: self.offset, as: UnsafeRawPointer?.self) != nil else { return 0 }
    return max(0, message.load(fromByteOffset: self.quantifierOffset, as: Int.self))
  }

  /// The address of a value of a repeated field, below its count.
  func element(_ index: Int, in message: UnsafeRawPointer) -> UnsafeRawPointer? {
    message.load(fromByteOffset: self.offset, as: UnsafeRawPointer?.self).map { $0 + index * self.valueSize }
  }

  /// The message at `place`.
  static func message(at place: UnsafeRawPointer) -> UnsafeMutableRawPointer? {
    place.load(as: UnsafeMutableRawPointer?.self)
  }

  /// The message at `place`; nil also for what is not one of the field's type.
  func checkedMessage(at place: UnsafeRawPointer) -> UnsafeMutableRawPointer? {
    guard let message = Self.message(at: place),
      message.load(as: MessageDescriptorPointer?.self) == self.message?.descriptor
    else { return nil }
    return message
  }

  /// The bytes of the string, or the bytes, at `place`.
  func bytes(at place: UnsafeRawPointer) -> UnsafeRawBufferPointer {
    if self.storedKind == .bytes {
      let bytes = place.load(as: ProtobufCBinaryData.self)
      return bytes.content
    }
    guard let text = place.load(as: UnsafeRawPointer?.self) else {
      return UnsafeRawBufferPointer(start: nil, count: 0)
    }
    return UnsafeRawBufferPointer(start: text, count: CString.length(text))
  }

  /// The text of the string at `place`.
  func string(at place: UnsafeRawPointer) -> String {
    String(decoding: self.bytes(at: place), as: UTF8.self)
  }

  /// Writes the string at `place`; `bytes` are valid UTF-8, without NUL if C strings hold the field.
  func storeString(
    _ bytes: UnsafeRawBufferPointer,
    at place: UnsafeMutableRawPointer,
    _ arena: Arena
  ) {
    if self.isStringAsBytes {
      place.storeBytes(of: arena.newBytes(bytes), as: ProtobufCBinaryData.self)
    } else {
      place.storeBytes(of: arena.newString(bytes), as: UnsafeMutableRawPointer?.self)
    }
  }

  /// Marks the field, which is not repeated, as there, which has then to be written. Unselects other members of its oneof.
  func select(in message: UnsafeMutableRawPointer) {
    if self.isOneofMember {
      message.storeBytes(of: self.number, toByteOffset: self.quantifierOffset, as: UInt32.self)
      (message + self.offset).initializeMemory(as: UInt8.self, repeating: 0, count: self.valueSize)
    } else if self.quantifierOffset != 0 {
      message.storeBytes(of: 1, toByteOffset: self.quantifierOffset, as: Int32.self)
    }
  }

  /// Sets the field to what it is in an empty message.
  func clear(in message: UnsafeMutableRawPointer) {
    let place = message + self.offset
    if self.isOneofMember {
      if self.isSelected(in: message) {
        message.storeBytes(of: 0, toByteOffset: self.quantifierOffset, as: UInt32.self)
        place.initializeMemory(as: UInt8.self, repeating: 0, count: self.valueSize)
      }
      return
    }
    if self.cardinality == .repeated {
      message.storeBytes(of: 0, toByteOffset: self.quantifierOffset, as: Int.self)
      place.storeBytes(of: nil, as: UnsafeRawPointer?.self)
      return
    }
    if self.quantifierOffset != 0 {
      message.storeBytes(of: 0, toByteOffset: self.quantifierOffset, as: Int32.self)
    }
    guard let value = self.descriptor.pointee.default_value else {
      place.initializeMemory(as: UInt8.self, repeating: 0, count: self.valueSize)
      return
    }
    // The default of a C string or of a message is the pointer itself.
    if self.storedKind == .string || self.kind == .message {
      place.storeBytes(of: value, as: UnsafeRawPointer?.self)
    } else {
      place.copyMemory(from: value, byteCount: self.valueSize)
    }
  }
}
