internal import Connect
internal import ConnectTesting

/// Hides the server's messages of errors from users, and nothing else.
struct RedactedErrors: AsyncUnaryInterceptor, AsyncStreamInterceptor {
  func interceptUnary<Input: Sendable, Output: Sendable>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    var response = try await next(request)
    if let error = response.error { response.result = .failure(Self.redacted(error)) }
    return response
  }

  func interceptStream<Input: Sendable, Output: Sendable>(
    _ request: StreamRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: StreamNext<Input, Output>
  ) async throws -> StreamResponse<Output> {
    try await next(request).mapErrors { Self.redacted($0) }
  }

  private static func redacted(_ error: ConnectError) -> ConnectError {
    ConnectError(
      code: error.code,
      message: "the service could not answer",
      details: error.details,
      metadata: error.metadata,
      httpStatus: error.httpStatus
    )
  }
}

extension ExplorationCase {
  static let redactedErrors = ExplorationCase(
    "RedactedErrors",
    InterceptorExplorer(of: { _ in RedactedErrors() })
      .calls(2)
      .methods([.unary, .serverStream, .clientStream, .bidirectionalStream])
      .server(.answers(.ok, .unavailable, .messagesThenFailure(.internalError), .headersThenNothing, .reset))
  )
}
