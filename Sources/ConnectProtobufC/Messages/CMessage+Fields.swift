public import CProtobufC
public import NIOCore

/// A number type of C structs.
public protocol CNumber {}

extension Int32: CNumber {}
extension Int64: CNumber {}
extension UInt32: CNumber {}
extension UInt64: CNumber {}
extension Int: CNumber {}
extension Float: CNumber {}
extension Double: CNumber {}

// Everything here is inlined into callers: there the compiler turns key paths into offsets.

/// Fields by their names in C. Members of a oneof share memory: if no member of the type is set, strings and bytes read
/// as empty, and messages as nil. If a oneof has several members of one type, check its case first; this also holds for
/// numbers. If a field has the name of a member of this type, such as `list`, read it from ``pointee``.
///
/// Invariant: as for ``MessageHandle``, whose storage lives as long as this value. A pointer in the struct is followed only
/// if it is its own field, or the member of a oneof that is set; all else that is read there is copied, or keeps the storage.
extension CMessage {
  /// A number, a Boolean (0 or 1), or a count. For a oneof member, check the case first: in C all members share memory.
  @inlinable
  public subscript<Value: CNumber>(dynamicMember path: KeyPath<Struct, Value>) -> Value {
    self.withUnsafePointer { $0.pointee[keyPath: path] }
  }

  /// An enum, or which member of a oneof is set.
  @inlinable
  public subscript<Value: RawRepresentable>(dynamicMember path: KeyPath<Struct, Value>) -> Value
  where Value.RawValue: FixedWidthInteger {
    self.withUnsafePointer { $0.pointee[keyPath: path] }
  }

  /// A string; empty if C has a null pointer.
  @inlinable
  public subscript(dynamicMember path: KeyPath<Struct, UnsafeMutablePointer<CChar>?>) -> String {
    self.withUnsafePointer { message in
      let text = message.pointee[keyPath: path]
      if MemoryLayout<Struct>.offset(of: path) == nil, !self.handle.isSet(string: text) { return "" }
      return CString.string(text)
    }
  }

  /// The bytes of a field, copied.
  @inlinable
  public subscript(dynamicMember path: KeyPath<Struct, ProtobufCBinaryData>) -> ByteBuffer {
    self.withUnsafePointer { message in
      let bytes = message.pointee[keyPath: path]
      if MemoryLayout<Struct>.offset(of: path) == nil, !self.handle.isSet(bytes: bytes) {
        return ByteBuffer()
      }
      return ByteBuffer(bytes: bytes.content)
    }
  }

  /// A message; nil if there is none, or if C code left a struct there that is not initialised.
  @inlinable
  public subscript<Inner: CMessageStruct>(
    dynamicMember path: KeyPath<Struct, UnsafeMutablePointer<Inner>?>
  ) -> CMessage<Inner>? {
    self.withUnsafePointer { message in
      guard let inner = message.pointee[keyPath: path] else { return nil }
      if MemoryLayout<Struct>.offset(of: path) == nil, !self.handle.isSet(message: inner) { return nil }
      return CMessage<Inner>(child: inner, of: self.handle)
    }
  }
}

/// Repeated fields, which are an array and its count in C. Empty if C code left a count without an array.
extension CMessage {
  /// Numbers: `message.list(\.ids, count: \.n_ids)`.
  @inlinable
  public func list<Value: CNumber>(
    _ path: KeyPath<Struct, UnsafeMutablePointer<Value>?>,
    count: KeyPath<Struct, Int>
  ) -> [Value] {
    self.elements(path, count: count) { $0 }
  }

  /// Enum values, like numbers.
  @inlinable
  public func list<Value: RawRepresentable>(
    _ path: KeyPath<Struct, UnsafeMutablePointer<Value>?>,
    count: KeyPath<Struct, Int>
  ) -> [Value] where Value.RawValue: FixedWidthInteger {
    self.elements(path, count: count) { $0 }
  }

  /// Strings, like numbers.
  @inlinable
  public func list(
    _ path: KeyPath<Struct, UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>,
    count: KeyPath<Struct, Int>
  ) -> [String] {
    self.elements(path, count: count) { CString.string($0) }
  }

  /// Fields of bytes, each copied.
  @inlinable
  public func list(
    _ path: KeyPath<Struct, UnsafeMutablePointer<ProtobufCBinaryData>?>,
    count: KeyPath<Struct, Int>
  ) -> [ByteBuffer] {
    self.elements(path, count: count) { ByteBuffer(bytes: $0.content) }
  }

  /// Messages; for a map, its entries.
  @inlinable
  public func list<Inner: CMessageStruct>(
    _ path: KeyPath<Struct, UnsafeMutablePointer<UnsafeMutablePointer<Inner>?>?>,
    count: KeyPath<Struct, Int>
  ) -> [CMessage<Inner>] {
    self.withElements(path, count: count) { values in
      var messages: [CMessage<Inner>] = []
      messages.reserveCapacity(values.count)
      for case let value? in values {
        if let message = CMessage<Inner>(child: value, of: self.handle) { messages.append(message) }
      }
      return messages
    }
  }

  @inlinable
  func elements<Value, Element>(
    _ path: KeyPath<Struct, UnsafeMutablePointer<Value>?>,
    count: KeyPath<Struct, Int>,
    _ transform: (Value) -> Element
  ) -> [Element] {
    self.withElements(path, count: count) { $0.map(transform) }
  }

  @inlinable
  func withElements<Value, Result>(
    _ path: KeyPath<Struct, UnsafeMutablePointer<Value>?>,
    count: KeyPath<Struct, Int>,
    _ body: (UnsafeBufferPointer<Value>) -> Result
  ) -> Result {
    self.withUnsafePointer { message in
      let start = message.pointee[keyPath: path]
      let count = start == nil ? 0 : max(0, message.pointee[keyPath: count])
      return body(UnsafeBufferPointer(start: start, count: count))
    }
  }
}

extension CMessage {
  /// nil if `pointer` does not point to a message of this type.
  @inlinable
  init?(child pointer: UnsafeMutablePointer<Struct>, of outer: MessageHandle) {
    let pointer = UnsafeMutableRawPointer(pointer)
    guard pointer.load(as: UnsafeRawPointer?.self) == Struct.messageType.rawDescriptor else { return nil }
    self.init(handle: outer.child(pointer))
  }
}

/// Checks whether a pointer that a key path reads is valid. Members of a oneof have no offset in Swift and share
/// memory. So a member of this kind must be set and hold the same pointer.
extension MessageHandle {
  @usableFromInline
  func isSet(string: UnsafeMutablePointer<CChar>?) -> Bool {
    self.isSet(as: .string) { $0.load(as: UnsafeMutablePointer<CChar>?.self) == string }
  }

  @usableFromInline
  func isSet(bytes: ProtobufCBinaryData) -> Bool {
    self.isSet(as: .bytes) {
      let found = $0.load(as: ProtobufCBinaryData.self)
      return found.data == bytes.data && found.len == bytes.len
    }
  }

  @usableFromInline
  func isSet<Inner: CMessageStruct>(message: UnsafeMutablePointer<Inner>) -> Bool {
    let message = UnsafeRawPointer(message)
    // The set member is a message, but it may be another member with another type.
    return self.isSet(as: .message) { $0.load(as: UnsafeRawPointer?.self) == message }
      && message.load(as: MessageDescriptorPointer?.self) == Inner.messageType.descriptor
  }

  private func isSet(as kind: FieldKind, where isSame: (UnsafeRawPointer) -> Bool) -> Bool {
    self.descriptor.fieldPointers.contains { field in
      guard field.pointee.isOneofMember, field.pointee.kind == kind else { return false }
      let setCase = self.pointer.load(fromByteOffset: Int(field.pointee.quantifier_offset), as: UInt32.self)
      return setCase == field.pointee.id && isSame(self.pointer + Int(field.pointee.offset))
    }
  }
}
