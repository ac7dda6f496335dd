internal import Connect

/// Shows a token, and fetches a new one once the server has refused it.
///
/// The bug: two calls that are refused at the same time fetch two tokens.
struct DoubleRefresh: AsyncUnaryInterceptor {
  let store: TokenStore

  func interceptUnary<Input: Sendable, Output: Sendable>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    var request = request
    let token = self.store.token
    request.headers["authorization"] = ["Bearer \(token)"]
    let response = try await next(request)
    guard response.code == .unauthenticated else { return response }
    try await self.store.refresh(token)
    request.headers["authorization"] = ["Bearer \(self.store.token)"]
    return try await next(request)
  }
}
