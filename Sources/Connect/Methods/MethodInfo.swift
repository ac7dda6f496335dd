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
