internal import Connect
internal import ConnectTesting

/// Shows a token, and another one if the server refuses it.
///
/// The bug: if no new token can be fetched, the old one is shown once more.
struct RefusedTokenAgain: AsyncUnaryInterceptor {
  let isMended: Bool
  let store: TokenStore

  func interceptUnary<Input: Sendable, Output: Sendable>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    var request = request
    request.headers["authorization"] = ["Bearer \(self.store.token)"]
    let response = try await next(request)
    guard response.code == .unauthenticated else { return response }
    do {
      try await self.store.refresh()
    } catch {
      if self.isMended { return response }
    }
    request.headers["authorization"] = ["Bearer \(self.store.token)"]
    return try await next(request)
  }
}

extension ExplorationCase {
  static let refusedTokenAgain = ExplorationCase(
    "RefusedTokenAgain",
    source: "Alamofire/Alamofire#3290",
    breaking: ["no refused token is shown again"]
  ) { isMended in
    InterceptorExplorer { world in
      let store = TokenStore {
        try await world.step("token endpoint", canFail: true)
        return world.token()
      }
      return Subject { _ in RefusedTokenAgain(isMended: isMended, store: store) }
    }
    .server(.answers(.ok, .unauthenticated))
    .neighbours(false)
    .check("no refused token is shown again") { run in
      run.calls.allSatisfy { call in
        zip(call.attempts, call.attempts.dropFirst()).allSatisfy { first, second in
          first.headers["authorization"] != second.headers["authorization"]
        }
      }
    }
  }
}
