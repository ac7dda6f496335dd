internal import CProtobufC
internal import Connect
internal import NIOCore

/// Protobuf's binary encoding: decoded by ``WireDecoding``, encoded by libprotobuf-c.
enum BinaryCoding {
  /// The most that an arena takes at once because of the length of the input.
  private static let largestFirstChunk = 16 * 1024 * 1024

  /// The message in `bytes`.
  ///
  /// - Parameters:
  ///   - isPartial: Lets required fields be missing.
  ///   - isolatesPieces: Gives each piece of the message an allocation of its own, for tests with an address sanitizer.
  static func decode(
    _ bytes: UnsafeRawBufferPointer,
    _ table: UnsafePointer<WireTable>,
    graph: SchemaGraph?,
    limits: DecodingLimits,
    isPartial: Bool = false,
    isolatesPieces: Bool = false
  ) throws(ConnectError) -> MessageHandle {
    let limit = limits.memory(forBytes: bytes.count)
    let expected = min(self.expectedMemory(bytes.count, table), limit, Self.largestFirstChunk)
    let arena = Arena(capacity: isolatesPieces ? 0 : expected, limit: limit)
    let storage = MessageStorage(arena: arena, graph: graph, isChecked: true)
    let decoding = WireDecoding(arena: arena, maximumDepth: limits.maximumDepth, isPartial: isPartial)
    let message = try decoding.message(bytes, table)
    if !isPartial, let name = RequiredCheck.missingField(message, table) {
      throw .undecodable("\(name): required, but not set")
    }
    arena.limit = .max
    return MessageHandle(storage: storage, pointer: message)
  }

  /// A message takes some more memory than its bytes: the struct, and for strings, lists and messages pointers, counts
  /// and what alignment leaves over.
  private static func expectedMemory(_ byteCount: Int, _ table: UnsafePointer<WireTable>) -> Int {
    Arena.rounded(table.pointee.size + 64 + 3 * byteCount)
  }

  /// The bytes of `message`, with room in front for an envelope.
  ///
  /// - Parameter isPartial: Lets required fields be missing, which are then written as zero or empty.
  static func encode(
    _ message: MessageHandle,
    _ table: UnsafePointer<WireTable>,
    isPartial: Bool = false
  ) throws(ConnectError) -> ByteBuffer {
    try StructCheck.check(message)
    if !isPartial, let name = RequiredCheck.missingField(message.pointer, table) {
      throw .unencodable("\(name): required, but not set")
    }
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
