internal import Connect

/// Shows a token, and fetches new ones until the server accepts one.
///
/// The bug: a server that refuses each token is asked for ever.
struct RefreshLoop: AsyncUnaryInterceptor {
  let store: TokenStore

  func interceptUnary<Input: Sendable, Output: Sendable>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    var request = request
    while true {
      let token = self.store.token
      request.headers["authorization"] = ["Bearer \(token)"]
      let response = try await next(request)
      guard response.code == .unauthenticated else { return response }
      try await self.store.refresh(token)
    }
  }
}
