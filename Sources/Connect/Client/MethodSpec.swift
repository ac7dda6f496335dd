public import SwiftProtobuf

/// Whether a method's call may be repeated, as its proto's `idempotency_level` says.
public enum IdempotencyLevel: Sendable, Hashable {
  case unknown
  /// Reads only; may also go as HTTP GET.
  case noSideEffects
  /// Doing it twice has the effect of doing it once.
  case idempotent
}

/// How many messages flow in each direction.
public enum StreamType: Sendable, Hashable {
  case unary
  case clientStream
  case serverStream
  case bidirectionalStream
}

/// What is known of a method without its message types.
public struct MethodInfo: Sendable, Hashable {
  /// `/package.Service/Method`.
  public var path: String
  public var streamType: StreamType
  public var idempotencyLevel: IdempotencyLevel

  public init(path: String, streamType: StreamType, idempotencyLevel: IdempotencyLevel = .unknown) {
    self.path = path
    self.streamType = streamType
    self.idempotencyLevel = idempotencyLevel
  }

  /// The method's own name, the last part of the path.
  public var name: Substring { self.path.split(separator: "/").last ?? "" }
  /// The service's full name, for example `connect.test.v1.TestService`.
  public var service: Substring { self.path.split(separator: "/").dropLast().last ?? "" }
}

/// A method as a value: where it is, how it streams, and how its two message types are coded.
///
/// Generated stubs have one for each method. This is the only place where a family of messages (SwiftProtobuf,
/// `Codable`, one's own) enters; everything else is generic over nothing but the two types.
///
/// ```swift
/// let say = MethodSpec<SayRequest, SayResponse>(path: "/eliza.v1.ElizaService/Say", streamType: .unary)
/// ```
public struct MethodSpec<Input: Sendable, Output: Sendable>: Sendable {
  public let info: MethodInfo
  public let input: MessageCoding<Input>
  public let output: MessageCoding<Output>

  public init(info: MethodInfo, input: MessageCoding<Input>, output: MessageCoding<Output>) {
    self.info = info
    self.input = input
    self.output = output
  }

  public var path: String { self.info.path }
  public var streamType: StreamType { self.info.streamType }
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
