public import Connect
public import NIOCore

/// Changes requests before they are sent, or fails them: signs them, adds headers, sends them elsewhere.
///
/// For ``RequestInterceptor``. An adapter is shared by all calls that it is given to.
public protocol RequestAdapter: Sendable {
  /// Called before each attempt, with the caller's request or the result of the previous adapter.
  ///
  /// The task is cancelled when the call ends. It begins on the call's executor, where it must not block; a function
  /// that does not suspend costs the call no change of thread.
  ///
  /// - Parameters:
  ///   - request: `message` is what a unary call sends, encoded but not compressed. It is nil for streams, whose
  ///     messages follow; what is set there for a stream is ignored.
  ///   - method: The method that is called: its path, kind and idempotency.
  /// - Throws: The call's error; a `ConnectError` stays as it is. Nothing is sent then, and no retrier is asked.
  func adapt(_ request: HTTPRequest<ByteBuffer?>, for method: MethodInfo) async throws -> HTTPRequest<
    ByteBuffer?
  >
}

/// A ``RequestAdapter`` that is a closure.
///
/// ```swift
/// let version = Adapter { request, _ in
///   var request = request
///   request.headers["x-client-version"] = ["7"]
///   return request
/// }
/// ```
public struct Adapter: RequestAdapter {
  /// The adapter as a closure; see ``RequestAdapter/adapt(_:for:)``.
  public typealias Body =
    @Sendable (HTTPRequest<ByteBuffer?>, MethodInfo) async throws -> HTTPRequest<ByteBuffer?>

  private let body: Body

  /// An adapter that calls `body`.
  public init(_ body: @escaping Body) {
    self.body = body
  }

  public func adapt(
    _ request: HTTPRequest<ByteBuffer?>,
    for method: MethodInfo
  ) async throws -> HTTPRequest<ByteBuffer?> {
    try await self.body(request, method)
  }
}
