internal import Connect
internal import ConnectTesting

/// Shows a token, and does without one if the token takes longer than two seconds.
final class TokenTimeLimit: Interceptor {
  /// The wait of one attempt.
  private final class Wait {
    var timer: Task<Void, Never>?
    var fetch: Task<Void, Never>?
    private var isOver = false

    /// Whether the caller is the first to end it.
    func end() -> Bool {
      defer { self.isOver = true }
      return !self.isOver
    }

    func cancel() {
      self.timer?.cancel()
      self.fetch?.cancel()
    }
  }

  private let clock: any Clock<Duration>
  private let token: @Sendable () async throws -> String
  private var wait: Wait?

  init(clock: any Clock<Duration>, token: @escaping @Sendable () async throws -> String) {
    self.clock = clock
    self.token = token
  }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(requestFunction: { request, proceed in
      self.wait?.cancel()
      let wait = Wait()
      self.wait = wait
      wait.timer = proceed.task {
        try? await self.clock.sleep(for: .seconds(2))
        if !Task.isCancelled, wait.end() { proceed(.success(request)) }
      }
      wait.fetch = proceed.task {
        let token = try? await self.token()
        guard !Task.isCancelled, wait.end() else { return }
        wait.timer?.cancel()
        var request = request
        if let token { request.headers["authorization"] = ["Bearer \(token)"] }
        proceed(.success(request))
      }
    })
  }

  func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(endFunction: { _ in
      self.wait?.cancel()
      self.wait = nil
    })
  }
}

extension ExplorationCase {
  static let tokenTimeLimit = ExplorationCase(
    "TokenTimeLimit",
    InterceptorExplorer { world in
      Subject { _ in
        TokenTimeLimit(clock: world.clock) {
          try await world.step("token endpoint", canFail: true)
          return world.token()
        }
      }
    }
    .calls(2)
    .server(.answers(.ok, .unavailable, .headersThenNothing, .reset))
  )
}
