internal import NIOCore

/// Where a retry begins.
public enum RetryStart: Sendable, Hashable {
  /// At the first hook of the level whose hook asks for the retry: of the message hooks, or of the byte hooks. Outer
  /// levels do not see the new attempt.
  case level
  /// At the start of the whole chain: the request passes the call hooks again, and then all message hooks and byte
  /// hooks. The interceptors stay the same objects.
  case start
}

/// A retry that an interceptor asks for: thrown by an async interceptor, or returned by a call hook
/// (``CallFunction/retryFunction``).
///
/// ```swift
/// func interceptUnary<Input, Output>(
///   _ request: HTTPRequest<Input>,
///   method: MethodSpec<Input, Output>,
///   next: UnaryNext<Input, Output>
/// ) async throws -> ResponseMessage<Output> {
///   let response = try await next(request)
///   guard response.code == .aborted else { return response }
///   throw RetryRequest(after: .milliseconds(10))
/// }
/// ```
///
/// It counts against the client's cap on retries (``ProtocolClientConfig/Retries``), and stays inside the call's deadline.
/// If the retry is refused, the last response passes on. Interceptors outside of the one that asks do not see the abandoned
/// attempt; they see the new request if it passes them. A stream is not retried once a result has gone out.
public struct RetryRequest: Error, Sendable {
  /// The request to begin with; nil for the request of the caller or, from the level, for the first request of the level.
  let part: RequestPart?
  /// How long to wait before the new attempt.
  public let delay: Duration
  /// Where the retry begins. A call hook's retry always begins at the start.
  public let start: RetryStart

  /// The request to begin with, without its message; nil for the request of the caller or of the level.
  public var request: HTTPRequest<Void>? { self.part?.head.map { HTTPRequest(head: $0) } }

  /// A retry with the request of the caller or, from the level, with the first request of the level.
  ///
  /// - Parameters:
  ///   - delay: How long to wait before.
  ///   - start: Where the retry begins; at the start of the chain by default.
  public init(after delay: Duration = .zero, from start: RetryStart = .start) {
    self.part = nil
    self.delay = delay
    self.start = start
  }

  /// A retry with another request.
  ///
  /// - Parameters:
  ///   - request: The request to begin with. Its message counts if it is the message of a unary call as the level where the
  ///     retry begins sees it, so that a retry from the start needs a message of the method's own type. Otherwise the
  ///     message stays as it was, and only URL, headers and context count.
  ///   - delay: How long to wait before.
  ///   - start: Where the retry begins; at the start of the chain by default.
  public init<Message: Sendable>(
    _ request: HTTPRequest<Message>,
    after delay: Duration = .zero,
    from start: RetryStart = .start
  ) {
    self.part = request.part
    self.delay = delay
    self.start = start
  }

  /// The request to begin with, without its message if it is not a message of the same type as that of `given`.
  func request(inPlaceOf given: RequestPart?) -> RequestPart? {
    guard case .whole(let head, let message) = self.part else { return self.part }
    let isSame =
      switch given {
      case .whole(_, let other): type(of: message) == type(of: other)
      case .wholeBytes: message is MessageBox<ByteBuffer>
      case .head, .message, .bytes, .end, nil: false
      }
    return isSame ? self.part : .head(head)
  }
}

extension RetryRequest: CustomStringConvertible {
  public var description: String { "a retry that was asked for where none can begin" }
}
