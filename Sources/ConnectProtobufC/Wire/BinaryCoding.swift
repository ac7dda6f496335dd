internal import CProtobufC
internal import Connect
internal import NIOCore

/// Protobuf's binary encoding: decoded by ``WireDecoding``, encoded by libprotobuf-c.
enum BinaryCoding {
  /// The most that an arena takes at once because of the length of the input.
  private static let largestFirstChunk = 16 * 1024 * 1024

  /// The message in `bytes`, of the type of `table`.
  ///
  /// - Parameters:
  ///   - isPartial: Lets required fields be missing.
  ///   - isolatesPieces: Gives each piece of the message an allocation of its own, for tests with an address sanitizer.
  static func decode(
    _ bytes: UnsafeRawBufferPointer,
    of table: MessageTable,
    graph: SchemaGraph?,
    limits: DecodingLimits,
    isPartial: Bool = false,
    isolatesPieces: Bool = false
  ) throws(ConnectError) -> MessageHandle {
    let limit = limits.memory(forBytes: bytes.count)
    let expected = min(self.expectedMemory(forBytes: bytes.count, of: table), limit, Self.largestFirstChunk)
    let arena = Arena(capacity: isolatesPieces ? 0 : expected, limit: limit)
    let storage = MessageStorage(arena: arena, graph: graph, isChecked: true)
    let decoding = WireDecoding(arena: arena, maximumDepth: limits.maximumDepth, isPartial: isPartial)
    let message = try decoding.message(from: bytes, of: table)
    if !isPartial, let name = RequiredCheck.missingField(in: message, of: table) {
      throw .undecodable("\(name): required, but not set")
    }
    arena.limit = .max
    return MessageHandle(storage: storage, pointer: message.address)
  }

  /// A message takes some more memory than its bytes: the struct, and for strings, lists and messages pointers, counts
  /// and what alignment leaves over.
  private static func expectedMemory(forBytes count: Int, of table: MessageTable) -> Int {
    Arena.rounded(table.size + 64 + 3 * count)
  }

  /// The bytes of `message`, which is of the type of `table`, with room in front for an envelope.
  ///
  /// - Parameter isPartial: Lets required fields be missing, which are then written as zero or empty.
  static func encode(
    _ message: MessageHandle,
    of table: MessageTable,
    isPartial: Bool = false
  ) throws(ConnectError) -> ByteBuffer {
    try StructCheck.check(message, of: table)
    if !isPartial, let name = RequiredCheck.missingField(in: message.message, of: table) {
      throw .unencodable("\(name): required, but not set")
    }
    let size = protobuf_c_message_get_packed_size(message.base)
    guard size >= 0, size <= Int32.max else {
      throw .unencodable("\(table.name): more than 2 GiB")
    }
    var buffer = ByteBuffer(withHeadroomFor: size)
    buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: size) { target in
      guard size > 0, let start = target.baseAddress else { return 0 }
      return protobuf_c_message_pack(message.base, start.assumingMemoryBound(to: UInt8.self))
    }
    return buffer
  }
}
