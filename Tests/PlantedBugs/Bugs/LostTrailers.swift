internal import Connect
internal import ConnectTesting

/// Hides the server's messages of errors from users.
///
/// The bug: the new error has no trailers, and so nothing that the server said in them.
struct LostTrailers: AsyncUnaryInterceptor {
  func interceptUnary<Input: Sendable, Output: Sendable>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    let response = try await next(request)
    guard let error = response.error else { return response }
    return ResponseMessage(
      error: ConnectError(code: error.code, message: "the service could not answer"),
      headers: response.headers
    )
  }
}

extension ExplorationCase {
  static let lostTrailers = ExplorationCase(
    "LostTrailers",
    source: "prisma-risk/tsoracle#344",
    breaking: ["headers and trailers arrive"],
    InterceptorExplorer(of: { _ in LostTrailers() })
      .server(.answers(.ok, .unavailable))
  )
}
