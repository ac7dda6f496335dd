public import CProtobufC
public import NIOCore

/// A number as C structs have it.
public protocol CNumber {}

extension Int32: CNumber {}
extension Int64: CNumber {}
extension UInt32: CNumber {}
extension UInt64: CNumber {}
extension Int: CNumber {}
extension Float: CNumber {}
extension Double: CNumber {}

/// Fields read by their names in C. Members of a oneof that are not set read as zero, empty or nil.
extension CMessage {
  /// A number, a Boolean (0 or 1), or a count. Of a oneof, look at its case first: in C all members share their memory.
  public subscript<Value: CNumber>(dynamicMember path: KeyPath<Struct, Value>) -> Value {
    self.read(path)
  }

  /// An enum, or which member of a oneof is set.
  public subscript<Value: RawRepresentable>(dynamicMember path: KeyPath<Struct, Value>) -> Value
  where Value.RawValue: FixedWidthInteger {
    self.read(path)
  }

  /// A string.
  public subscript(dynamicMember path: KeyPath<Struct, UnsafeMutablePointer<CChar>?>) -> String {
    self.withUnsafePointer { message in
      let text = UnsafeRawPointer(message.pointee[keyPath: path])
      guard self.isThere(path, .string, { $0.load(as: UnsafeRawPointer?.self) == text }) else { return "" }
      return CString.string(text)
    }
  }

  /// Bytes.
  public subscript(dynamicMember path: KeyPath<Struct, ProtobufCBinaryData>) -> ByteBuffer {
    self.withUnsafePointer { message in
      let bytes = message.pointee[keyPath: path]
      let isThere = self.isThere(path, .bytes) {
        let found = $0.load(as: ProtobufCBinaryData.self)
        return found.data == bytes.data && found.len == bytes.len
      }
      guard isThere, let data = bytes.data else { return ByteBuffer() }
      return ByteBuffer(bytes: UnsafeBufferPointer(start: data, count: bytes.len))
    }
  }

  /// A message; nil if there is none.
  public subscript<Inner: CMessageStruct>(
    dynamicMember path: KeyPath<Struct, UnsafeMutablePointer<Inner>?>
  ) -> CMessage<Inner>? {
    self.withUnsafePointer { message in
      guard let inner = message.pointee[keyPath: path] else { return nil }
      let isThere = self.isThere(path, .message) { $0.load(as: UnsafeMutablePointer<Inner>?.self) == inner }
      return isThere ? CMessage<Inner>(handle: self.handle.child(inner)) : nil
    }
  }

  private func read<Value>(_ path: KeyPath<Struct, Value>) -> Value {
    self.withUnsafePointer { $0.pointee[keyPath: path] }
  }

  /// Whether what a path reads as a pointer is one. Only a oneof's members, which have no offset in Swift, may be
  /// something else: then a member of this kind has to be set that holds the same.
  private func isThere<Value>(
    _ path: KeyPath<Struct, Value>,
    _ kind: FieldKind,
    _ isSame: (UnsafeRawPointer) -> Bool
  ) -> Bool {
    if MemoryLayout<Struct>.offset(of: path) != nil { return true }
    let message = self.handle.pointer
    return self.handle.descriptor.fieldPointers.contains { field in
      guard field.pointee.isOneofMember, field.pointee.kind == kind else { return false }
      let setCase = message.load(fromByteOffset: Int(field.pointee.quantifier_offset), as: UInt32.self)
      return setCase == field.pointee.id && isSame(message + Int(field.pointee.offset))
    }
  }
}

/// Repeated fields, which C holds as an array and its count.
extension CMessage {
  /// Numbers: `message.list(\.ids, count: \.n_ids)`.
  public func list<Value: CNumber>(
    _ path: KeyPath<Struct, UnsafeMutablePointer<Value>?>,
    count: KeyPath<Struct, Int>
  ) -> [Value] {
    self.elements(path, count) { $0 }
  }

  /// Enum values.
  public func list<Value: RawRepresentable>(
    _ path: KeyPath<Struct, UnsafeMutablePointer<Value>?>,
    count: KeyPath<Struct, Int>
  ) -> [Value] where Value.RawValue: FixedWidthInteger {
    self.elements(path, count) { $0 }
  }

  /// Strings.
  public func list(
    _ path: KeyPath<Struct, UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>,
    count: KeyPath<Struct, Int>
  ) -> [String] {
    self.pointees(path, count) { CString.string($0) }
  }

  /// Bytes.
  public func list(
    _ path: KeyPath<Struct, UnsafeMutablePointer<ProtobufCBinaryData>?>,
    count: KeyPath<Struct, Int>
  ) -> [ByteBuffer] {
    self.elements(path, count) { ByteBuffer(bytes: UnsafeBufferPointer(start: $0.data, count: $0.len)) }
  }

  /// Messages; of a map, its entries.
  public func list<Inner: CMessageStruct>(
    _ path: KeyPath<Struct, UnsafeMutablePointer<UnsafeMutablePointer<Inner>?>?>,
    count: KeyPath<Struct, Int>
  ) -> [CMessage<Inner>] {
    self.pointees(path, count) { CMessage<Inner>(handle: self.handle.child($0)) }
  }

  private func elements<Value, Element>(
    _ path: KeyPath<Struct, UnsafeMutablePointer<Value>?>,
    _ count: KeyPath<Struct, Int>,
    _ transform: (Value) -> Element
  ) -> [Element] {
    self.withUnsafePointer { message in
      let values = UnsafeBufferPointer(
        start: message.pointee[keyPath: path],
        count: message.pointee[keyPath: count]
      )
      return values.map(transform)
    }
  }

  private func pointees<Value, Element>(
    _ path: KeyPath<Struct, UnsafeMutablePointer<Value?>?>,
    _ count: KeyPath<Struct, Int>,
    _ transform: (Value) -> Element
  ) -> [Element] {
    self.withUnsafePointer { message in
      let values = UnsafeBufferPointer(
        start: message.pointee[keyPath: path],
        count: message.pointee[keyPath: count]
      )
      return values.compactMap { $0.map(transform) }
    }
  }
}
