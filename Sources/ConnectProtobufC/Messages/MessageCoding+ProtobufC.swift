public import Connect

extension MessageCoding {
  /// Messages of libprotobuf-c in protoc-c's structs: binary, and JSON where their descriptors are known.
  public static func protobufC<Struct>(
    limits: DecodingLimits = .defaults
  ) -> MessageCoding where Message == CMessage<Struct> {
    MessageCoding(
      binary: Functions(
        encode: { try $0.serializedBytes(deterministic: $1.deterministic) },
        decode: { bytes, _ in try CMessage(serializedBytes: bytes, limits: limits) }
      ),
      json: Functions(
        encode: { try $0.jsonBytes(options: $1, limits: limits) },
        decode: { try CMessage(jsonBytes: $0, options: $1, limits: limits) }
      )
    )
  }
}

extension MessageCoding where Message == DynamicMessage {
  /// Dynamic messages: binary and JSON.
  ///
  /// - Parameters:
  ///   - descriptor: The type of decoded messages. Encoding a message of another type fails.
  ///   - limits: Limits on decoding, and on writing JSON.
  public static func dynamic(_ descriptor: MessageDescriptor, limits: DecodingLimits = .defaults)
    -> MessageCoding
  {
    @Sendable func checked(_ message: DynamicMessage) throws -> DynamicMessage {
      guard message.descriptor.schema.descriptor == descriptor.schema.descriptor else {
        throw ConnectError.misuse("a \(message.descriptor.name) in the place of a \(descriptor.name)")
      }
      return message
    }
    return MessageCoding(
      binary: Functions(
        encode: { try checked($0).serializedBytes(deterministic: $1.deterministic) },
        decode: { bytes, _ in try DynamicMessage(descriptor, serializedBytes: bytes, limits: limits) }
      ),
      json: Functions(
        encode: { try checked($0).jsonBytes(options: $1, limits: limits) },
        decode: { try DynamicMessage(descriptor, jsonBytes: $0, options: $1, limits: limits) }
      )
    )
  }
}

extension MethodSpec {
  /// A method between messages of libprotobuf-c.
  public init<In, Out>(
    path: String,
    streamType: StreamType,
    idempotencyLevel: IdempotencyLevel = .unknown,
    limits: DecodingLimits = .defaults
  ) where Input == CMessage<In>, Output == CMessage<Out> {
    self.init(
      info: MethodInfo(path: path, streamType: streamType, idempotencyLevel: idempotencyLevel),
      input: .protobufC(limits: limits),
      output: .protobufC(limits: limits)
    )
  }
}

extension MethodDescriptor {
  /// The specification for calls of the method with dynamic messages.
  public var spec: MethodSpec<DynamicMessage, DynamicMessage> {
    MethodSpec(info: self.info, input: .dynamic(self.input), output: .dynamic(self.output))
  }
}
