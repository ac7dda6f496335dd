public import CProtobufC
internal import Connect
public import NIOCore

/// Memory that the fields of a ``CMessage`` point to; lives as long as the message. Use it only in
/// ``CMessage/update(_:)``, as only then nobody else can see the message.
public struct CMessageArena {
  private let storage: MessageStorage

  init(storage: MessageStorage) {
    self.storage = storage
  }

  /// A C string.
  ///
  /// - Throws: A `ConnectError` with `invalid_argument` if there is a NUL in `text`, where C would end it.
  public func string(_ text: String) throws -> UnsafeMutablePointer<CChar> {
    guard !text.utf8.contains(0) else {
      throw ConnectError.misuse("a string has a NUL, which a C string cannot hold")
    }
    var text = text
    return text.withUTF8 {
      self.storage.arena.newString(UnsafeRawBufferPointer($0)).assumingMemoryBound(to: CChar.self)
    }
  }

  /// Bytes for a field, copied into the message's memory.
  public func bytes(_ bytes: ByteBuffer) -> ProtobufCBinaryData {
    bytes.withUnsafeReadableBytes { self.storage.arena.newBytes($0) }
  }

  /// Bytes for a field, copied into the message's memory.
  public func bytes(_ bytes: some Sequence<UInt8>) -> ProtobufCBinaryData {
    Array(bytes).withUnsafeBytes { self.storage.arena.newBytes($0) }
  }

  /// An empty message, to be nested in this one.
  public func message<Inner: CMessageStruct>(_ type: Inner.Type = Inner.self) -> UnsafeMutablePointer<Inner> {
    self.storage.arena.newMessage(Inner.messageType.descriptor).assumingMemoryBound(to: Inner.self)
  }

  /// A message with fields that `body` sets, to be nested in this one.
  public func message<Inner: CMessageStruct>(
    _ type: Inner.Type = Inner.self,
    _ body: (inout Inner) throws -> Void
  ) rethrows -> UnsafeMutablePointer<Inner> {
    let message = self.message(type)
    try body(&message.pointee)
    return message
  }

  /// A copy of a message, to be nested in this one.
  public func copy<Inner>(_ message: CMessage<Inner>) -> UnsafeMutablePointer<Inner> {
    self.storage.arena.copy(message.handle.pointer).assumingMemoryBound(to: Inner.self)
  }

  /// An array, for a repeated field. Set its count too. Strings and messages are arrays of pointers.
  public func array<Value>(_ values: some Collection<Value>) -> UnsafeMutablePointer<Value> {
    let memory = self.storage.arena.take(values.count * MemoryLayout<Value>.stride)
      .bindMemory(to: Value.self, capacity: values.count)
    for (index, value) in values.enumerated() { (memory + index).initialize(to: value) }
    return memory
  }
}
