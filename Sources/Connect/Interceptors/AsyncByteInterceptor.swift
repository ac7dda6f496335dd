public import NIOCore

/// An interceptor of unary calls, written as one `async` function around `next`. It works on bytes, like byte hooks: it
/// sees the HTTP request with the encoded message, and the response before its message is decoded.
///
/// ```swift
/// func interceptUnaryBytes(
///   _ request: HTTPRequest<ByteBuffer>,
///   method: MethodInfo,
///   next: UnaryByteNext
/// ) async throws -> HTTPResponse {
///   var request = request
///   request.headers["x-signature"] = [try await self.signer.sign(request.message)]
///   return try await next(request)
/// }
/// ```
///
/// Task-local values are visible here if the caller has bound them, or an outer async interceptor around its `next`. An
/// interceptor has one async form for unary calls: this one or ``AsyncUnaryInterceptor``.
public protocol AsyncUnaryByteInterceptor: Interceptor, Sendable {
  /// Handles one unary call: returns the response of `next`, or another one.
  ///
  /// - Parameters:
  ///   - request: The request as outer interceptors have left it, with the encoded message.
  ///   - method: The path and the properties of the method, without its message types.
  ///   - next: Sends a request inwards. Every call after the first is a retry. It begins at the byte hook after
  ///     this one, and counts against the cap.
  /// - Throws: Whatever is thrown becomes the call's error, ``ConnectError`` as it is.
  func interceptUnaryBytes(
    _ request: HTTPRequest<ByteBuffer>,
    method: MethodInfo,
    next: UnaryByteNext
  ) async throws -> HTTPResponse
}

extension AsyncUnaryByteInterceptor {
  public var asyncUnaryForm: AsyncUnaryForm? { .bytes(self) }
}

/// The inner part of the call, for an ``AsyncUnaryByteInterceptor``: called like a function.
public struct UnaryByteNext: Sendable {
  /// Sends a request inwards. It runs where its caller does.
  public typealias Body =
    nonisolated(nonsending) @Sendable (HTTPRequest<ByteBuffer>) async throws -> HTTPResponse

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

  /// Sends `request` inwards and waits for the response, which also carries an error of the RPC. Otherwise like
  /// ``UnaryNext/callAsFunction(_:)``.
  public nonisolated(nonsending) func callAsFunction(_ request: HTTPRequest<ByteBuffer>) async throws
    -> HTTPResponse
  {
    if let body = self.body { return try await body(request) }
    guard case .wholeBytes(let response) = try await self.inner?(request.part) else {
      throw CancellationError()
    }
    return response
  }
}

/// An interceptor of streams, written as one `async` function around `next`. It works on encoded messages, like byte
/// hooks.
///
/// An interceptor has one async form for streams: this one or ``AsyncStreamInterceptor``.
public protocol AsyncStreamByteInterceptor: Interceptor, Sendable {
  /// Handles one stream: returns the response of `next`, or another one, at once.
  ///
  /// - Parameters:
  ///   - request: The request's head, and its encoded messages as a sequence.
  ///   - method: The path and the properties of the method, without its message types.
  ///   - next: Sends a request inwards. Every call after the first is a retry. It begins at the byte hook after
  ///     this one, counts against the cap, and reads the request's messages again from the first.
  /// - Throws: Whatever is thrown becomes the call's error, ``ConnectError`` as it is.
  func interceptStreamBytes(
    _ request: StreamRequest<ByteBuffer>,
    method: MethodInfo,
    next: StreamNext<ByteBuffer, ByteBuffer>
  ) async throws -> StreamResponse<ByteBuffer>
}

extension AsyncStreamByteInterceptor {
  public var asyncStreamForm: AsyncStreamForm? { .bytes(self) }
}
