public import CProtobufC

/// Access to the content of strings and bytes in place, without a copy.
extension CMessage {
  /// Calls `body` with the field's bytes in the memory of the message. The bytes are empty if the field is a oneof
  /// member that is not set.
  ///
  /// ```swift
  /// let checksum = message.withBytes(\.data) { bytes in
  ///   bytes.byteOffsets.reduce(into: 0) { $0 ^= bytes.unsafeLoad(fromByteOffset: $1, as: UInt8.self) }
  /// }
  /// ```
  @inlinable
  public func withBytes<Result>(
    _ path: KeyPath<Struct, ProtobufCBinaryData>,
    _ body: (RawSpan) throws -> Result
  ) rethrows -> Result {
    try self.withUnsafePointer { message in
      let bytes = message.pointee[keyPath: path]
      let isSet = MemoryLayout<Struct>.offset(of: path) != nil || self.handle.isSet(bytes: bytes)
      return try body((isSet ? bytes.content : UnsafeRawBufferPointer(start: nil, count: 0)).bytes)
    }
  }

  /// Calls `body` with the UTF-8 of a string in the memory of the message, without the NUL. The bytes are empty if the
  /// field is a oneof member that is not set.
  @inlinable
  public func withBytes<Result>(
    _ path: KeyPath<Struct, UnsafeMutablePointer<CChar>?>,
    _ body: (RawSpan) throws -> Result
  ) rethrows -> Result {
    try self.withUnsafePointer { message in
      let text = message.pointee[keyPath: path]
      let isSet = MemoryLayout<Struct>.offset(of: path) != nil || self.handle.isSet(string: text)
      return try body((isSet ? CString.bytes(text) : UnsafeRawBufferPointer(start: nil, count: 0)).bytes)
    }
  }
}

extension DynamicMessage {
  /// Calls `body` with the content of a string (as UTF-8) or bytes, in the memory of the message.
  ///
  /// - Throws: What `body` throws. A `ConnectError` with `invalid_argument` if there is no such field, or if it is not
  ///   a single string or bytes field.
  public func withBytes<Result>(
    of key: some FieldKey,
    _ body: (RawSpan) throws -> Result
  ) throws -> Result {
    try self.withUnsafeBytes(of: key) { try body($0.bytes) }
  }
}
