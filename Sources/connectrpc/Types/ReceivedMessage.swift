import Connect
import ConnectProtobufC
import NIOCore

/// A response message. Its types may have to be looked up, which decoding cannot wait for.
enum ReceivedMessage: Sendable {
  case message(DynamicMessage)
  /// JSON that does not decode with the known types, and why.
  case text(ByteBuffer, of: MessageDescriptor, ConnectError)
}

extension MethodDescriptor {
  /// The method for calls whose messages may have types that the descriptor's pool lacks.
  ///
  /// - Parameter streamType: By default the method's. All kinds of streams have the same bytes.
  func openSpec(as streamType: StreamType? = nil) -> MethodSpec<DynamicMessage, ReceivedMessage> {
    let info = MethodInfo(
      path: self.path,
      streamType: streamType ?? self.info.streamType,
      idempotencyLevel: self.info.idempotencyLevel
    )
    return MethodSpec(info: info, input: .sent(self.input), output: .received(self.output))
  }
}

extension MessageCoding<DynamicMessage> {
  /// Messages that may have been made with a larger pool than that of `descriptor`.
  fileprivate static func sent(_ descriptor: MessageDescriptor) -> MessageCoding<DynamicMessage> {
    MessageCoding(
      binary: Functions(
        encode: { try $0.serializedBytes(deterministic: $1.deterministic) },
        decode: { bytes, _ in try DynamicMessage(descriptor, serializedBytes: bytes) }
      ),
      json: Functions(
        encode: { try $0.jsonBytes(options: $1) },
        decode: { try DynamicMessage(descriptor, jsonBytes: $0, options: $1) }
      )
    )
  }
}

extension MessageCoding<ReceivedMessage> {
  fileprivate static func received(_ descriptor: MessageDescriptor) -> MessageCoding<ReceivedMessage> {
    MessageCoding(
      binary: Functions(
        encode: { message, _ in try message.decoded.serializedBytes() },
        decode: { bytes, _ in .message(try DynamicMessage(descriptor, serializedBytes: bytes)) }
      ),
      json: Functions(
        encode: { try $0.decoded.jsonBytes(options: $1) },
        decode: { bytes, options in
          do {
            return .message(try DynamicMessage(descriptor, jsonBytes: bytes, options: options))
          } catch let error as ConnectError {
            guard !TypeNames.inJSON(bytes).isEmpty else { throw error }
            return .text(bytes, of: descriptor, error)
          }
        }
      )
    )
  }
}

extension ReceivedMessage {
  /// - Throws: Why the message does not decode.
  fileprivate var decoded: DynamicMessage {
    get throws {
      switch self {
      case .message(let message): return message
      case .text(_, _, let error): throw error
      }
    }
  }
}
