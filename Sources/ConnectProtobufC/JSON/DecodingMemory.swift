internal import CProtobufC
internal import Connect
internal import NIOCore

/// The arena of a message while the message is decoded.
///
/// Invariant: all memory that it returns has the size that was asked for, and is valid as long as the arena. A place that
/// it stores to is one of a message of this arena.
struct DecodingMemory {
  let arena: Arena

  func allocate(_ size: Int) throws(ConnectError) -> UnsafeMutableRawPointer {
    guard let memory = self.arena.allocate(size) else {
      throw .undecodable(
        "JSON: takes more than \(self.arena.limit) bytes of memory",
        code: .resourceExhausted
      )
    }
    return memory
  }

  func newMessage(of schema: MessageSchema) throws(ConnectError) -> MessagePointer {
    let message = try self.allocate(schema.table.size)
    message.copyMemory(from: schema.table.emptyMessage, byteCount: schema.table.size)
    return MessagePointer(message)
  }

  /// Stores a copy of `bytes` in the form of the place's field.
  ///
  /// - Parameter bytes: Valid UTF-8 for a string; without NUL if the field is a C string.
  func store(_ bytes: UnsafeRawBufferPointer, in place: FieldPlace) throws(ConnectError) {
    if place.field.storedKind == .bytes {
      var value = ProtobufCBinaryData()
      if bytes.count > 0 {
        let copy = try self.allocate(bytes.count)
        copy.store(bytes)
        value = ProtobufCBinaryData(len: bytes.count, data: copy.assumingMemoryBound(to: UInt8.self))
      }
      place.store(value)
      return
    }
    let copy = try self.allocate(bytes.count + 1)
    copy.store(bytes)
    copy.storeBytes(of: 0, toByteOffset: bytes.count, as: UInt8.self)
    place.store(copy)
  }

  func store(_ bytes: ByteBuffer, in place: FieldPlace) throws(ConnectError) {
    let error = bytes.withUnsafeReadableBytes { bytes -> ConnectError? in
      do throws(ConnectError) {
        try self.store(bytes, in: place)
        return nil
      } catch {
        return error
      }
    }
    if let error { throw error }
  }

  /// - Parameter text: Without NUL if the field is a C string.
  func store(_ text: String, in place: FieldPlace) throws(ConnectError) {
    try self.store(ByteBuffer(string: text), in: place)
  }
}
