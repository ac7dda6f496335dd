internal import Connect
internal import ConnectTesting

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
    try await self.store.refresh()
    request.headers["authorization"] = ["Bearer \(self.store.token)"]
    return try await next(request)
  }
}

extension ExplorationCase {
  static let doubleRefresh = ExplorationCase(
    "DoubleRefresh",
    source: "felangel/fresh#126",
    breaking: ["one refresh at a time"],
    InterceptorExplorer { world in
      let store = TokenStore {
        try await world.step("token endpoint")
        return world.token()
      }
      return Subject(observing: store) { _ in DoubleRefresh(store: store) }
    }
    .calls(2)
    .server(.answers(.ok, .unauthenticated))
    .check("one refresh at a time") { run in run.subject.mostRunning <= 1 }
  )
}
