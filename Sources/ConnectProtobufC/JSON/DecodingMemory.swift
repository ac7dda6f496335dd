internal import CProtobufC
internal import Connect
internal import NIOCore

/// An array in the arena while it grows.
struct GrowingArray {
  private let field: FieldSchema
  private var memory: UnsafeMutableRawPointer?
  private var capacity = 0
  private var count = 0

  init(_ field: FieldSchema) {
    self.field = field
  }

  /// The place after the last value.
  mutating func next(_ memory: DecodingMemory) throws(ConnectError) -> UnsafeMutableRawPointer {
    let size = self.field.valueSize
    if let memory = self.memory, self.count < self.capacity { return memory + self.count * size }
    let capacity = max(4, 2 * self.capacity)
    let new = try memory.allocate(capacity * size)
    if let old = self.memory { new.copyMemory(from: old, byteCount: self.count * size) }
    self.memory = new
    self.capacity = capacity
    return new + self.count * size
  }

  /// Counts the value that was written at the place after the last.
  mutating func keep() {
    self.count += 1
  }

  func store(in message: UnsafeMutableRawPointer) {
    guard self.count > 0 else { return }
    message.storeBytes(of: self.count, toByteOffset: self.field.quantifierOffset, as: Int.self)
    message.storeBytes(of: self.memory, toByteOffset: self.field.offset, as: UnsafeMutableRawPointer?.self)
  }
}

/// The arena of a message while it is read.
struct DecodingMemory {
  let arena: Arena

  func allocate(_ size: Int) throws(ConnectError) -> UnsafeMutableRawPointer {
    guard let memory = self.arena.allocate(size) else {
      throw .undecodable(
        "JSON: takes more than \(self.arena.limit) bytes of memory",
        .resourceExhausted
      )
    }
    return memory
  }

  func newMessage(_ schema: MessageSchema) throws(ConnectError) -> UnsafeMutableRawPointer {
    let message = try self.allocate(schema.descriptor.pointee.sizeof_message)
    schema.descriptor.initialize(message)
    return message
  }

  func storeBytes(_ bytes: UnsafeRawBufferPointer, at place: UnsafeMutableRawPointer) throws(ConnectError) {
    var value = ProtobufCBinaryData()
    if bytes.count > 0 {
      let copy = try self.allocate(bytes.count)
      copy.store(bytes)
      value = ProtobufCBinaryData(len: bytes.count, data: copy.assumingMemoryBound(to: UInt8.self))
    }
    place.storeBytes(of: value, as: ProtobufCBinaryData.self)
  }

  func storeBytes(_ bytes: ByteBuffer, at place: UnsafeMutableRawPointer) throws(ConnectError) {
    let error = bytes.withUnsafeReadableBytes { bytes -> ConnectError? in
      do throws(ConnectError) {
        try self.storeBytes(bytes, at: place)
        return nil
      } catch {
        return error
      }
    }
    if let error { throw error }
  }

  /// - Parameter bytes: Valid UTF-8, without NUL if the field is a C string.
  func storeString(
    _ bytes: UnsafeRawBufferPointer,
    _ field: FieldSchema,
    at place: UnsafeMutableRawPointer
  ) throws(ConnectError) {
    if field.isStringAsBytes {
      try self.storeBytes(bytes, at: place)
      return
    }
    let copy = try self.allocate(bytes.count + 1)
    copy.store(bytes)
    copy.storeBytes(of: 0, toByteOffset: bytes.count, as: UInt8.self)
    place.storeBytes(of: copy, as: UnsafeMutableRawPointer?.self)
  }
}
