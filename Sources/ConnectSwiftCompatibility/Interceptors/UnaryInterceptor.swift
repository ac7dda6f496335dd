#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Sees and changes unary calls.
///
/// ```swift
/// final class TokenInterceptor: UnaryInterceptor {
///   func handleUnaryRequest<Message: ProtobufMessage>(
///     _ request: HTTPRequest<Message>,
///     proceed: @escaping @Sendable (Result<HTTPRequest<Message>, ConnectError>) -> Void
///   ) {
///     var headers = request.headers
///     headers["authorization"] = ["Bearer 42"]
///     proceed(
///       .success(
///         HTTPRequest(
///           url: request.url,
///           headers: headers,
///           message: request.message,
///           method: request.method,
///           trailers: request.trailers,
///           idempotencyLevel: request.idempotencyLevel
///         )
///       )
///     )
///   }
/// }
/// ```
public protocol UnaryInterceptor: Interceptor {
  /// First: the request with its message. A failure ends the call; it passes the response hooks of the interceptors in front.
  @Sendable
  func handleUnaryRequest<Message: ProtobufMessage>(
    _ request: HTTPRequest<Message>,
    proceed: @escaping @Sendable (Result<HTTPRequest<Message>, ConnectError>) -> Void
  )

  /// Second: the request with its encoded message, not compressed.
  @Sendable
  func handleUnaryRawRequest(
    _ request: HTTPRequest<Data?>,
    proceed: @escaping @Sendable (Result<HTTPRequest<Data?>, ConnectError>) -> Void
  )

  /// Third: the response with its encoded message, or the error. What it proceeds with is ignored once the call is over, by its
  /// deadline or its caller.
  @Sendable
  func handleUnaryRawResponse(_ response: HTTPResponse, proceed: @escaping @Sendable (HTTPResponse) -> Void)

  /// Last: the response with its message, or the error.
  @Sendable
  func handleUnaryResponse<Message: ProtobufMessage>(
    _ response: ResponseMessage<Message>,
    proceed: @escaping @Sendable (ResponseMessage<Message>) -> Void
  )
}

extension UnaryInterceptor {
  /// Passes the request on.
  @Sendable
  public func handleUnaryRequest<Message: ProtobufMessage>(
    _ request: HTTPRequest<Message>,
    proceed: @escaping @Sendable (Result<HTTPRequest<Message>, ConnectError>) -> Void
  ) {
    proceed(.success(request))
  }

  /// Passes the request on.
  @Sendable
  public func handleUnaryRawRequest(
    _ request: HTTPRequest<Data?>,
    proceed: @escaping @Sendable (Result<HTTPRequest<Data?>, ConnectError>) -> Void
  ) {
    proceed(.success(request))
  }

  /// Passes the response on.
  @Sendable
  public func handleUnaryRawResponse(
    _ response: HTTPResponse,
    proceed: @escaping @Sendable (HTTPResponse) -> Void
  ) {
    proceed(response)
  }

  /// Passes the response on.
  @Sendable
  public func handleUnaryResponse<Message: ProtobufMessage>(
    _ response: ResponseMessage<Message>,
    proceed: @escaping @Sendable (ResponseMessage<Message>) -> Void
  ) {
    proceed(response)
  }
}
