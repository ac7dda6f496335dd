internal import Connect
internal import ConnectTesting

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
      try await self.store.refresh()
    }
  }
}

extension ExplorationCase {
  static let refreshLoop = ExplorationCase(
    "RefreshLoop",
    source: "Alamofire/Alamofire#2690",
    breaking: ["at most 10 attempts"],
    InterceptorExplorer { world in
      let store = TokenStore {
        try await world.step("token endpoint")
        return world.token()
      }
      return Subject { _ in RefreshLoop(store: store) }
    }
    .server(.answers(.ok, .unauthenticated))
  )
}
