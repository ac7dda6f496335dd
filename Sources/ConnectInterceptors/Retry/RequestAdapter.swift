public import Connect
public import NIOCore

/// Changes requests before they are sent, or fails them: signs them, adds headers, sends them elsewhere.
///
/// For ``RequestInterceptor``. An adapter is shared by all calls that it is given to. For the form with a completion, see
/// ``CallbackRequestAdapter``.
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

/// A ``RequestAdapter`` with a completion in place of `async`.
public protocol CallbackRequestAdapter: RequestAdapter {
  /// Called before each attempt, as ``RequestAdapter/adapt(_:for:)``.
  ///
  /// - Parameters:
  ///   - request: The caller's request, or the result of the previous adapter.
  ///   - method: The method that is called.
  ///   - completion: To be called once, from any thread, with the request or with the call's error.
  func adapt(_ request: HTTPRequest<ByteBuffer?>, for method: MethodInfo, completion: Adapter.Completion)
}

extension CallbackRequestAdapter {
  public func adapt(
    _ request: HTTPRequest<ByteBuffer?>,
    for method: MethodInfo
  ) async throws -> HTTPRequest<ByteBuffer?> {
    let error = ConnectError(
      code: .internalError,
      message:
        "\(Self.self) adapts a request of \(method.path), and let go of its completion without calling it"
    )
    return try await Adapter.Completion.wait(
      ifReleased: .failure(error),
      ifCancelled: .failure(CancellationError())
    ) { self.adapt(request, for: method, completion: $0) }.get()
  }
}

/// A ``RequestAdapter`` that is a closure, `async` or with a completion.
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
  /// The adapter as a closure; see ``CallbackRequestAdapter/adapt(_:for:completion:)``.
  public typealias CallbackBody = @Sendable (HTTPRequest<ByteBuffer?>, MethodInfo, Completion) -> Void
  /// What an adapter in callback form calls.
  public typealias Completion = RequestCompletion<Result<HTTPRequest<ByteBuffer?>, any Error>>

  private struct CallbackAdapter: CallbackRequestAdapter {
    let body: CallbackBody

    func adapt(_ request: HTTPRequest<ByteBuffer?>, for method: MethodInfo, completion: Completion) {
      self.body(request, method, completion)
    }
  }

  private let body: Body

  /// An adapter that calls `body`.
  public init(_ body: @escaping Body) {
    self.body = body
  }

  /// An adapter that calls `body`, and waits for its completion.
  public init(_ body: @escaping CallbackBody) {
    let callback = CallbackAdapter(body: body)
    self.body = { try await callback.adapt($0, for: $1) }
  }

  public func adapt(
    _ request: HTTPRequest<ByteBuffer?>,
    for method: MethodInfo
  ) async throws -> HTTPRequest<ByteBuffer?> {
    try await self.body(request, method)
  }
}
