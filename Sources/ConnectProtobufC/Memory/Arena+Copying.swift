internal import CProtobufC

/// Allocation of messages, strings and bytes in an arena.
extension Arena {
  /// An initialised message.
  func newMessage(_ descriptor: MessageDescriptorPointer) -> UnsafeMutableRawPointer {
    let message = self.take(descriptor.pointee.sizeof_message)
    descriptor.initialize(message)
    return message
  }

  /// A C string of `bytes`, which must not contain NUL.
  func newString(_ bytes: UnsafeRawBufferPointer) -> UnsafeMutableRawPointer {
    let copy = self.take(bytes.count + 1)
    copy.store(bytes)
    copy.storeBytes(of: 0, toByteOffset: bytes.count, as: UInt8.self)
    return copy
  }

  /// A copy of `bytes`.
  func newBytes(_ bytes: UnsafeRawBufferPointer) -> ProtobufCBinaryData {
    guard bytes.count > 0 else { return ProtobufCBinaryData() }
    let copy = self.take(bytes.count)
    copy.store(bytes)
    return ProtobufCBinaryData(len: bytes.count, data: copy.assumingMemoryBound(to: UInt8.self))
  }

  /// A copy of `message` with everything it contains.
  ///
  /// Follows libprotobuf-c's descriptors, as C code may have put a message of any type into a field.
  func copy(_ message: UnsafeRawPointer) -> UnsafeMutableRawPointer {
    let descriptor = message.load(as: MessageDescriptorPointer.self)
    let size = descriptor.pointee.sizeof_message
    let copy = self.take(size)
    copy.copyMemory(from: message, byteCount: size)
    for field in descriptor.fieldPointers {
      if field.pointee.isOneofMember {
        let setCase = message.load(fromByteOffset: Int(field.pointee.quantifier_offset), as: UInt32.self)
        if setCase != field.pointee.id { continue }
      }
      let kind = field.pointee.kind
      let place = copy + Int(field.pointee.offset)
      guard field.pointee.isRepeated else {
        self.copyPointee(of: place, kind: kind, defaultValue: field.pointee.default_value)
        continue
      }
      let count = message.load(fromByteOffset: Int(field.pointee.quantifier_offset), as: Int.self)
      guard count > 0, let array = place.load(as: UnsafeRawPointer?.self) else { continue }
      let newArray = self.take(count * kind.size)
      newArray.copyMemory(from: array, byteCount: count * kind.size)
      place.storeBytes(of: newArray, as: UnsafeMutableRawPointer?.self)
      if kind.isPackable { continue }
      for index in 0..<count {
        self.copyPointee(of: newArray + index * kind.size, kind: kind, defaultValue: nil)
      }
    }
    self.copyUnknownFields(of: copy.assumingMemoryBound(to: ProtobufCMessage.self))
    return copy
  }

  /// Replaces the value at `place` by a copy of its content. Default values are not copied: they live as long as the
  /// descriptor.
  private func copyPointee(
    of place: UnsafeMutableRawPointer,
    kind: FieldKind,
    defaultValue: UnsafeRawPointer?
  ) {
    switch kind {
    case .string:
      guard let text = place.load(as: UnsafeRawPointer?.self), text != defaultValue else { return }
      let size = CString.length(text) + 1
      let copy = self.take(size)
      copy.copyMemory(from: text, byteCount: size)
      place.storeBytes(of: copy, as: UnsafeMutableRawPointer?.self)
    case .bytes:
      let bytes = place.load(as: ProtobufCBinaryData.self)
      // Invalid content is copied as it is; encoding the copy finds the error.
      if bytes.content.isEmpty { return }
      let copy = self.newBytes(bytes.content)
      place.storeBytes(of: copy, as: ProtobufCBinaryData.self)
    case .message:
      guard let message = place.load(as: UnsafeRawPointer?.self), message != defaultValue else { return }
      place.storeBytes(of: self.copyIfInitialized(message), as: UnsafeMutableRawPointer?.self)
    default:
      break
    }
  }

  /// A copy of `message`, or only of its head (`ProtobufCMessage`) if the struct is not an initialised message.
  private func copyIfInitialized(_ message: UnsafeRawPointer) -> UnsafeMutableRawPointer {
    let descriptor = message.load(as: MessageDescriptorPointer?.self)
    if descriptor?.pointee.magic == UInt32(PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC) { return self.copy(message) }
    let copy = self.take(MemoryLayout<ProtobufCMessage>.stride)
    copy.copyMemory(from: message, byteCount: MemoryLayout<ProtobufCMessage>.size)
    return copy
  }

  private func copyUnknownFields(of message: UnsafeMutablePointer<ProtobufCMessage>) {
    let count = Int(message.pointee.n_unknown_fields)
    guard count > 0, let fields = message.pointee.unknown_fields else { return }
    let size = count * MemoryLayout<ProtobufCMessageUnknownField>.stride
    let memory = self.take(size)
    memory.copyMemory(from: fields, byteCount: size)
    let copies = memory.bindMemory(to: ProtobufCMessageUnknownField.self, capacity: count)
    for index in 0..<count {
      guard let data = copies[index].data else { continue }
      copies[index].data = self.newBytes(UnsafeRawBufferPointer(start: data, count: copies[index].len)).data
    }
    message.pointee.unknown_fields = copies
  }
}

extension UnsafePointer<ProtobufCMessageDescriptor> {
  /// Makes the memory at `message` an empty message.
  func initialize(_ message: UnsafeMutableRawPointer) {
    if self.pointee.message_init != nil {
      protobuf_c_message_init(self, message)
      return
    }
    // Descriptors made at run time have no init function. libprotobuf-c handles this case in the same way, but only
    // when decoding.
    message.initializeMemory(as: UInt8.self, repeating: 0, count: self.pointee.sizeof_message)
    message.storeBytes(of: self, as: MessageDescriptorPointer.self)
    for field in self.fieldPointers where !field.pointee.isRepeated {
      guard let value = field.pointee.default_value else { continue }
      (message + Int(field.pointee.offset)).copyMemory(from: value, byteCount: field.pointee.kind.size)
    }
  }
}
