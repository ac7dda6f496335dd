internal import NIOCore
internal import SwiftProtobuf

/// The encoding of a call's messages; the raw value is the subtype of the content type.
enum MessageCodec: String {
  case proto
  case json

  func decode<Message: SwiftProtobuf.Message>(_ bytes: ByteBuffer) throws -> Message {
    let bytes = Array(bytes.readableBytesView)
    do {
      switch self {
      case .proto:
        return try Message(serializedBytes: bytes)
      case .json:
        var options = JSONDecodingOptions()
        options.ignoreUnknownFields = true
        return try Message(jsonUTF8Bytes: bytes, options: options)
      }
    } catch {
      throw RPCFailure(.invalidArgument, "message does not decode: \(error)")
    }
  }

  func encode(_ message: some SwiftProtobuf.Message) throws -> ByteBuffer {
    let bytes: [UInt8] =
      switch self {
      case .proto: try message.serializedBytes()
      case .json: try message.jsonUTF8Bytes()
      }
    return ByteBuffer(bytes: bytes)
  }
}
