public import SwiftProtobuf

/// A method as a value: where it is, how it streams, and how its two message types are coded.
///
/// Generated stubs have one for each method. This is the only place where a family of messages (SwiftProtobuf,
/// `Codable`, your own) enters; everything else is generic over the two types alone.
///
/// ```swift
/// let say = MethodSpec<SayRequest, SayResponse>(path: "/eliza.v1.ElizaService/Say", streamType: .unary)
/// ```
public struct MethodSpec<Input: Sendable, Output: Sendable>: Sendable {
  /// What is known of the method without its message types.
  public let info: MethodInfo
  /// How request messages are coded.
  public let input: MessageCoding<Input>
  /// How response messages are coded.
  public let output: MessageCoding<Output>
  @usableFromInline package let erased: AnyMethod
  /// Puts a request's message into a box. The compiler knows its type where the method is made.
  @usableFromInline let box: @Sendable (Input) -> any AnyMessage

  /// A method between messages of any families.
  @inlinable
  public init(info: MethodInfo, input: MessageCoding<Input>, output: MessageCoding<Output>) {
    self.info = info
    self.input = input
    self.output = output
    self.box = { MessageBox($0) }
    self.erased = AnyMethod(
      info: info,
      encode: { message, codec, deterministic in
        try codec.encode(MessageBox<Input>.of(message).message, as: input, deterministic: deterministic)
      },
      decode: { bytes, codec in MessageBox<Output>(try codec.decode(bytes, as: output)) },
      accept: { visitor, erased in
        visitor.visit(MethodSpec(info: info, input: input, output: output, erased: erased) { MessageBox($0) })
      }
    )
  }

  @usableFromInline
  init(
    info: MethodInfo,
    input: MessageCoding<Input>,
    output: MessageCoding<Output>,
    erased: AnyMethod,
    box: @escaping @Sendable (Input) -> any AnyMessage
  ) {
    self.box = box
    self.info = info
    self.input = input
    self.output = output
    self.erased = erased
  }

  /// Where the method is on a server: `/package.Service/Method`.
  public var path: String { self.info.path }
  /// How many messages flow in each direction.
  public var streamType: StreamType { self.info.streamType }
  /// Whether a call may be repeated or go as HTTP GET.
  public var idempotencyLevel: IdempotencyLevel { self.info.idempotencyLevel }
}

extension MethodSpec where Input: SwiftProtobuf.Message, Output: SwiftProtobuf.Message {
  /// A method between SwiftProtobuf messages.
  public init(path: String, streamType: StreamType, idempotencyLevel: IdempotencyLevel = .unknown) {
    self.init(
      info: MethodInfo(path: path, streamType: streamType, idempotencyLevel: idempotencyLevel),
      input: .protobuf,
      output: .protobuf
    )
  }
}

extension MethodSpec where Input: Codable, Output: Codable {
  /// A method between plain `Codable` types; needs ``JSONCodec``.
  public init(
    codablePath path: String,
    streamType: StreamType,
    idempotencyLevel: IdempotencyLevel = .unknown
  ) {
    self.init(
      info: MethodInfo(path: path, streamType: streamType, idempotencyLevel: idempotencyLevel),
      input: .codable,
      output: .codable
    )
  }
}
