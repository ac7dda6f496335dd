public import NIOCore

/// An interceptor of unary calls, written as one `async` function around `next`, that works on bytes, like byte hooks: it
/// sees the HTTP request with the encoded message, and the response after the wire protocol.
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
/// Task-local values that the caller, or an async interceptor outside around its `next`, has bound are visible here. An
/// interceptor has one async form for unary calls: this one or ``AsyncUnaryInterceptor``.
public protocol AsyncUnaryByteInterceptor: Interceptor, Sendable {
  /// Handles one unary call: returns its response, from `next` or of its own.
  ///
  /// - Parameter next: Sends a request inwards. Every call after the first is a retry that begins at the byte hook
  ///   after this one, and counts against the cap.
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

/// What is inside an ``AsyncUnaryByteInterceptor``: called like a function.
public struct UnaryByteNext: Sendable {
  private let body: @Sendable (HTTPRequest<ByteBuffer>) async throws -> HTTPResponse

  /// A `next` that runs `body`, for tests of interceptors and for interceptors around others.
  public init(_ body: @escaping @Sendable (HTTPRequest<ByteBuffer>) async throws -> HTTPResponse) {
    self.body = body
  }

  /// Sends `request` inwards and waits for the response; an error of the RPC is in the response. All else is as in
  /// ``UnaryNext/callAsFunction(_:)``.
  public func callAsFunction(_ request: HTTPRequest<ByteBuffer>) async throws -> HTTPResponse {
    try await self.body(request)
  }
}

/// An interceptor of streams, written as one `async` function around `next`, that works on bytes, like byte hooks: its
/// messages are encoded.
///
/// An interceptor has one async form for streams: this one or ``AsyncStreamInterceptor``.
public protocol AsyncStreamByteInterceptor: Interceptor, Sendable {
  /// Handles one stream: returns its response, from `next` or of its own, at once.
  ///
  /// - Parameter next: Sends a request inwards. Every call after the first is a retry that begins at the byte hook
  ///   after this one, counts against the cap, and reads the request's messages from the first again.
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
