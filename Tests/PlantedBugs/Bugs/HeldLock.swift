internal import Connect
internal import ConnectTesting

/// Sends calls one after the other while a token is new, and fetches another token if the server refuses it.
///
/// The bug: fetching takes the lock that the call itself holds. The lock is one that tasks wait for: a lock that blocks its thread would
/// stop the exploration.
struct HeldLock: AsyncUnaryInterceptor {
  let lock: CallLimit
  let store: TokenStore

  func interceptUnary<Input: Sendable, Output: Sendable>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    await self.lock.acquire()
    defer { self.lock.release() }
    let token = self.store.token
    var request = request
    request.headers["authorization"] = ["Bearer \(token)"]
    let response = try await next(request)
    guard response.code == .unauthenticated else { return response }
    try await self.refresh(token)
    request.headers["authorization"] = ["Bearer \(self.store.token)"]
    return try await next(request)
  }

  private func refresh(_ token: String) async throws {
    await self.lock.acquire()
    defer { self.lock.release() }
    if self.store.token == token { try await self.store.refresh() }
  }
}

extension ExplorationCase {
  static let heldLock = ExplorationCase(
    "HeldLock",
    source: "cfug/dio#1612",
    breaking: ["each call ends"],
    InterceptorExplorer { world in
      let lock = CallLimit(1)
      let store = TokenStore {
        try await world.step("token endpoint")
        return world.token()
      }
      return Subject { _ in HeldLock(lock: lock, store: store) }
    }
    .calls(2)
    .server(.answers(.ok, .unauthenticated))
  )
}
