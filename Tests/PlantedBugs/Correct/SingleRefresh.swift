internal import Connect
internal import ConnectTesting
internal import Synchronization

/// Fetches one token in the place of each that the server has refused, for all calls that need it.
final class SingleRefresh: Sendable {
  private let store: TokenStore
  private let running = Mutex<(refused: String, task: Task<Void, any Error>)?>(nil)

  init(store: TokenStore) {
    self.store = store
  }

  /// The token to show in the place of `refused`.
  func token(after refused: String) async throws -> String {
    let task = self.running.withLock { running -> Task<Void, any Error>? in
      guard self.store.token == refused else { return nil }
      if let running, running.refused == refused { return running.task }
      let task = Task { try await self.store.refresh() }
      running = (refused, task)
      return task
    }
    // The next call that is refused gets a new one, also if this failed or gave the same token.
    defer { self.running.withLock { if $0?.task == task { $0 = nil } } }
    try await task?.value
    return self.store.token
  }
}

/// Shows a token, and once another one if the server refuses it.
struct RefreshingTokens: AsyncUnaryInterceptor {
  let store: TokenStore
  let refresh: SingleRefresh

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
    guard let token = try? await self.refresh.token(after: token) else { return response }
    request.headers["authorization"] = ["Bearer \(token)"]
    return try await next(request)
  }
}

extension ExplorationCase {
  static let refreshingTokens = ExplorationCase(
    "RefreshingTokens",
    InterceptorExplorer { world in
      let store = TokenStore {
        try await world.step("token endpoint", canFail: true)
        return world.token()
      }
      let refresh = SingleRefresh(store: store)
      return Subject(observing: store) { _ in RefreshingTokens(store: store, refresh: refresh) }
    }
    .calls(3)
    .server(.answers(.ok, .unauthenticated))
    // A refresh goes on for the others when the call that began it is cancelled.
    .allowing(.backgroundWork)
    .check("one refresh at a time") { run in run.subject.mostRunning <= 1 }
  )
}
