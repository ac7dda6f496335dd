internal import NIOCore
internal import SwiftProtobuf

/// Protobuf's canonical JSON mapping by SwiftProtobuf, from and to `ByteBuffer`.
enum ProtobufJSON {
  static func encode(_ message: some SwiftProtobuf.Message, options: JSONCodingOptions) throws -> ByteBuffer {
    var encoding = JSONEncodingOptions()
    encoding.alwaysPrintEnumsAsInts = options.alwaysPrintEnumsAsInts
    encoding.preserveProtoFieldNames = options.preserveProtoFieldNames
    encoding.useDeterministicOrdering = options.deterministic
    let bytes: ContiguousByteBuffer = try message.jsonUTF8Bytes(options: encoding)
    return bytes.buffer
  }

  static func decode<M: SwiftProtobuf.Message>(
    _ type: M.Type,
    from bytes: ByteBuffer,
    options: JSONCodingOptions
  ) throws -> M {
    var decoding = JSONDecodingOptions()
    decoding.ignoreUnknownFields = options.ignoreUnknownFields
    return try M(jsonUTF8Bytes: ContiguousByteBuffer(bytes), options: decoding)
  }
}
