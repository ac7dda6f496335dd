internal import CProtobufC
internal import Connect
internal import NIOCore

/// Protobuf's binary encoding by libprotobuf-c.
enum BinaryCoding {
  /// How much an arena takes at once without asking, if the input makes it expect more than this.
  private static let largestFirstChunk = 16 * 1024 * 1024

  /// The message in `bytes`.
  ///
  /// - Parameter isolatesPieces: Gives each piece of the message an allocation of its own, for tests with an address
  ///   sanitizer.
  static func decode(
    _ bytes: UnsafeRawBufferPointer,
    _ descriptor: MessageDescriptorPointer,
    graph: SchemaGraph?,
    limits: DecodingLimits,
    isolatesPieces: Bool = false
  ) throws(ConnectError) -> MessageHandle {
    var check = WireCheck(limits: limits)
    try check.check(bytes, descriptor)
    let capacity = isolatesPieces ? 0 : min(check.memory, limits.maximumMemory, Self.largestFirstChunk)
    let arena = Arena.make(capacity: capacity, limit: limits.maximumMemory)
    let storage = MessageStorage(arena: arena, graph: graph, isChecked: true)
    var allocator = Arena.allocator(arena)
    let input = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
    guard let message = protobuf_c_message_unpack(descriptor, &allocator, bytes.count, input) else {
      if arena.pointee.isExhausted {
        throw .undecodable(
          "\(descriptor.fullName): takes more than \(limits.maximumMemory) bytes of memory",
          .resourceExhausted
        )
      }
      // All else was checked before.
      throw .undecodable(
        "\(descriptor.fullName): a required field is missing, or a varint in a run of values is too long"
      )
    }
    arena.pointee.limit = .max
    return MessageHandle(storage: storage, pointer: UnsafeMutableRawPointer(message))
  }

  /// The bytes of `message`, with room in front for an envelope.
  static func encode(_ message: MessageHandle) throws(ConnectError) -> ByteBuffer {
    try StructCheck.check(message)
    let size = protobuf_c_message_get_packed_size(message.base)
    guard size >= 0, size <= Int32.max else {
      throw .unencodable("\(message.descriptor.fullName): more than 2 GiB")
    }
    var buffer = ByteBuffer(withHeadroomFor: size)
    buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: size) { target in
      guard size > 0, let start = target.baseAddress else { return 0 }
      return protobuf_c_message_pack(message.base, start.assumingMemoryBound(to: UInt8.self))
    }
    return buffer
  }
}
