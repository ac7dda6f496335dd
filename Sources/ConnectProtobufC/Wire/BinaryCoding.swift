internal import CProtobufC
internal import Connect
internal import NIOCore

/// Protobuf's binary encoding: decoded by ``WireDecoding``, encoded by libprotobuf-c.
enum BinaryCoding {
  /// The limit on the first chunk of an arena, whose size is estimated from the length of the input.
  private static let largestFirstChunk = 16 * 1024 * 1024

  /// Decodes a message of the type of `table`.
  ///
  /// - Parameters:
  ///   - isPartial: Whether required fields may be missing.
  ///   - isolatesPieces: Whether each piece of the message is a separate allocation, for tests with an address
  ///     sanitizer.
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

  /// Estimates the memory of a message. It is more than the bytes: it includes the struct, pointers and counts of
  /// strings, lists and messages, and padding.
  private static func expectedMemory(forBytes count: Int, of table: MessageTable) -> Int {
    Arena.rounded(table.size + 64 + 3 * count)
  }

  /// Encodes `message` of the type of `table`, with room in front for an envelope.
  ///
  /// - Parameter isPartial: Whether required fields may be missing. They are then written as zero or empty.
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
