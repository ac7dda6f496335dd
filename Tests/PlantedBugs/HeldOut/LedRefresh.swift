internal import Connect
internal import ConnectTesting
internal import Synchronization

/// A token that is fetched once for all calls that need it at the same time.
final class LedToken: Sendable {
  private let isMended: Bool
  private let running = Mutex<Task<String, any Error>?>(nil)
  private let fetch: @Sendable () async throws -> String

  init(isMended: Bool, fetch: @escaping @Sendable () async throws -> String) {
    self.isMended = isMended
    self.fetch = fetch
  }

  /// The bug: the fetch ends when the call that began it is cancelled, also for the others.
  func get() async throws -> String {
    let (task, isOwn) = self.running.withLock { running -> (Task<String, any Error>, Bool) in
      if let running { return (running, false) }
      let task = Task {
        defer { self.running.withLock { $0 = nil } }
        return try await self.fetch()
      }
      running = task
      return (task, true)
    }
    return try await withTaskCancellationHandler {
      try await task.value
    } onCancel: {
      if isOwn, !self.isMended { task.cancel() }
    }
  }
}

/// Shows a token that calls share.
struct LedRefresh: AsyncUnaryInterceptor {
  let token: LedToken

  func interceptUnary<Input: Sendable, Output: Sendable>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    var request = request
    request.headers["authorization"] = ["Bearer \(try await self.token.get())"]
    return try await next(request)
  }
}

extension ExplorationCase {
  static let ledRefresh = ExplorationCase(
    "LedRefresh",
    source: "mui/mui-x#22947",
    breaking: ["calls fail for a reason"]
  ) { isMended in
    InterceptorExplorer { world in
      let token = LedToken(isMended: isMended) {
        try await world.step("token endpoint")
        return world.token()
      }
      return Subject { _ in LedRefresh(token: token) }
    }
    .calls(2)
  }
}
