/// The async form of an interceptor of unary calls, by what it works on.
public enum AsyncUnaryForm: Sendable {
  /// It works on the method's own types, like message hooks.
  case messages(any AsyncUnaryInterceptor)
  /// It works on the encoded message, like byte hooks.
  case bytes(any AsyncUnaryByteInterceptor)
}

/// The async form of an interceptor of streams, by what it works on.
public enum AsyncStreamForm: Sendable {
  /// It works on the method's own types, like message hooks.
  case messages(any AsyncStreamInterceptor)
  /// It works on encoded messages, like byte hooks.
  case bytes(any AsyncStreamByteInterceptor)
}

/// An interceptor of unary calls, written as one `async` function around `next`. It can stand in one chain
/// with interceptors of the closure form; it works on messages, like message hooks.
///
/// ```swift
/// func interceptUnary<Input, Output>(
///   _ request: HTTPRequest<Input>,
///   method: MethodSpec<Input, Output>,
///   next: UnaryNext<Input, Output>
/// ) async throws -> ResponseMessage<Output> {
///   var request = request
///   request.headers["authorization"] = ["Bearer \(try await token())"]
///   let response = try await next(request)
///   if response.code == .unauthenticated { return try await next(request) }  // a retry
///   return response
/// }
/// ```
///
/// Task-local values are visible here if the caller has bound them, or an outer interceptor around its `next`.
/// It runs where the caller's task prefers to, or an outer interceptor around its `next`: on an event loop it must not block.
///
/// The outermost such interceptor of a call runs in a task of its own, so that the caller is free at the deadline whatever
/// it does. An inner one runs inside of the `next` outside of it, in the same task. It should return soon once that task is
/// cancelled, or its own `next` throws: until then, that `next` does not return either, and no new attempt reaches the inner
/// one.
public protocol AsyncUnaryInterceptor: Interceptor, Sendable {
  /// Handles one unary call: returns the response of `next`, or another one.
  ///
  /// - Parameters:
  ///   - request: The request as outer interceptors have left it.
  ///   - method: The path and the properties of the method, and how its messages are coded.
  ///   - next: Sends a request inwards. Every call after the first is a retry. It begins at the hook after this
  ///     one, and counts against the cap.
  /// - Throws: Whatever is thrown becomes the call's error, ``ConnectError`` as it is.
  func interceptUnary<Input: Sendable, Output: Sendable>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output>
}

extension AsyncUnaryInterceptor {
  public var asyncUnaryForm: AsyncUnaryForm? { .messages(self) }
}

/// The inner part of the call, for an ``AsyncUnaryInterceptor``: called like a function.
public struct UnaryNext<Input: Sendable, Output: Sendable>: Sendable {
  /// Sends a request inwards. It runs where its caller does.
  public typealias Body =
    nonisolated(nonsending) @Sendable (HTTPRequest<Input>) async throws -> ResponseMessage<Output>

  /// One of the two is there. An enumeration of both would be laid out at run time.
  private let body: Body?
  private let inner: ErasedUnaryNext?

  /// A `next` that runs `body`, for tests of interceptors and for interceptors around others.
  public init(_ body: @escaping Body) {
    self.body = body
    self.inner = nil
  }

  init(_ next: @escaping ErasedUnaryNext) {
    self.body = nil
    self.inner = next
  }

  /// Sends `request` inwards and waits for the response, which also carries an error of the RPC.
  ///
  /// Once the cap on retries is reached, it returns the last response again. The interceptor may wait here in a child
  /// task, and cancel only that task: the attempt is then abandoned, also on the wire. The interceptor may go on with
  /// another `next` or return another response.
  ///
  /// - Throws: `CancellationError` if the task was cancelled, or if an inner interceptor started a new attempt. After a
  ///   new attempt, the result of this interceptor is ignored. ``ConnectError`` with `internal` if an earlier `next` is
  ///   still pending, with `resource_exhausted` if the cap is reached and no attempt has had a response.
  public nonisolated(nonsending) func callAsFunction(_ request: HTTPRequest<Input>) async throws
    -> ResponseMessage<Output>
  {
    if let body = self.body { return try await body(request) }
    guard case .whole(let response) = try await self.inner?(request.part) else { throw CancellationError() }
    return ResponseMessage(response)
  }
}

/// The inner part of a unary call, without the types of its messages.
typealias ErasedUnaryNext = nonisolated(nonsending) @Sendable (RequestPart) async throws -> ResultPart

/// An interceptor of streams, written as one `async` function around `next`.
///
/// It sees the request's messages and the response's results as asynchronous sequences. It returns the results, changed
/// or not, at once: nothing is read until the caller asks for it.
///
/// ```swift
/// func interceptStream<Input, Output>(
///   _ request: StreamRequest<Input>,
///   method: MethodSpec<Input, Output>,
///   next: StreamNext<Input, Output>
/// ) async throws -> StreamResponse<Output> {
///   try await next(request).mapErrors { error in redacted(error) }
/// }
/// ```
public protocol AsyncStreamInterceptor: Interceptor, Sendable {
  /// Handles one stream: returns the response of `next`, or another one, at once.
  ///
  /// - Parameters:
  ///   - request: The request's head, and its messages as a sequence.
  ///   - method: The path and the properties of the method, and how its messages are coded.
  ///   - next: Sends a request inwards. Every call after the first is a retry. It begins at the hook after this
  ///     one, counts against the cap, and reads the request's messages again from the first.
  /// - Throws: Whatever is thrown becomes the call's error, ``ConnectError`` as it is.
  func interceptStream<Input: Sendable, Output: Sendable>(
    _ request: StreamRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: StreamNext<Input, Output>
  ) async throws -> StreamResponse<Output>
}

extension AsyncStreamInterceptor {
  public var asyncStreamForm: AsyncStreamForm? { .messages(self) }
}

/// The inner part of the call, for an ``AsyncStreamInterceptor``: called like a function.
public struct StreamNext<Input: Sendable, Output: Sendable>: Sendable {
  private let body: @Sendable (StreamRequest<Input>) async throws -> StreamResponse<Output>

  /// A `next` that runs `body`, for tests of interceptors and for interceptors around others.
  public init(_ body: @escaping @Sendable (StreamRequest<Input>) async throws -> StreamResponse<Output>) {
    self.body = body
  }

  /// Sends `request` inwards. Returns at once; errors of the RPC are in the response's end.
  ///
  /// The interceptor may read the response's results in a child task, and cancel only that task: the attempt is then
  /// abandoned, also on the wire. The interceptor may go on with another `next` or return another response.
  ///
  /// - Throws: The last attempt's ``ConnectError`` if no other attempt is possible. The reason is the cap on retries,
  ///   more request messages than are kept, or a result of this interceptor that has gone out. If the last attempt had
  ///   no error, ``ConnectError`` with `resource_exhausted`. ``ConnectError`` with `internal` if the results of an
  ///   earlier `next` have not ended.
  public func callAsFunction(_ request: StreamRequest<Input>) async throws -> StreamResponse<Output> {
    try await self.body(request)
  }
}
