/// Whether a method's call may be repeated, as its proto's `idempotency_level` says.
public enum IdempotencyLevel: Sendable, Hashable {
  /// The proto says nothing: a repeated call may have another effect.
  case unknown
  /// Reads only; may also go as HTTP GET.
  case noSideEffects
  /// Doing it twice has the effect of doing it once.
  case idempotent
}

/// How many messages flow in each direction.
public enum StreamType: Sendable, Hashable {
  /// One request message, one response message.
  case unary
  /// Any number of request messages, one response message.
  case clientStream
  /// One request message, any number of response messages.
  case serverStream
  /// Any number of messages in both directions.
  case bidirectionalStream
}

/// What is known of a method without its message types.
public struct MethodInfo: Sendable, Hashable {
  /// Where the method is on a server: `/package.Service/Method`.
  public var path: String
  /// How many messages flow in each direction.
  public var streamType: StreamType
  /// Whether a call may be repeated or go as HTTP GET.
  public var idempotencyLevel: IdempotencyLevel
  /// Whether the program learns of the method while it runs: from a schema that it loads, or from a caller for whom it passes calls
  /// on. gRPC's metrics count such methods together, since there may be any number of them. It does not count for
  /// equality.
  public var isDynamic = false

  /// A method at `path`, which is used as it is.
  public init(path: String, streamType: StreamType, idempotencyLevel: IdempotencyLevel = .unknown) {
    self.path = path
    self.streamType = streamType
    self.idempotencyLevel = idempotencyLevel
  }

  public static func == (left: MethodInfo, right: MethodInfo) -> Bool {
    left.path == right.path && left.streamType == right.streamType
      && left.idempotencyLevel == right.idempotencyLevel
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(self.path)
    hasher.combine(self.streamType)
    hasher.combine(self.idempotencyLevel)
  }

  /// The method's own name, the last part of the path.
  public var name: Substring { self.path.split(separator: "/").last ?? "" }
  /// The service's full name, for example `connect.test.v1.TestService`.
  public var service: Substring { self.path.split(separator: "/").dropLast().last ?? "" }
}
