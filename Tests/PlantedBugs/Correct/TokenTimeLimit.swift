internal import Connect
internal import ConnectTesting

/// Shows a token, and does without one if the token takes longer than two seconds.
final class TokenTimeLimit: Interceptor {
  private let clock: any Clock<Duration>
  private let token: @Sendable () async throws -> String
  private var timer: Task<Void, Never>?
  private var fetch: Task<Void, Never>?
  private var hasProceeded = false

  init(clock: any Clock<Duration>, token: @escaping @Sendable () async throws -> String) {
    self.clock = clock
    self.token = token
  }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(requestFunction: { request, proceed in
      self.hasProceeded = false
      self.timer = proceed.task {
        try? await self.clock.sleep(for: .seconds(2))
        guard !self.hasProceeded, !Task.isCancelled else { return }
        self.hasProceeded = true
        proceed(.success(request))
      }
      self.fetch = proceed.task {
        let token = try? await self.token()
        guard !self.hasProceeded, !Task.isCancelled else { return }
        self.hasProceeded = true
        self.timer?.cancel()
        var request = request
        if let token { request.headers["authorization"] = ["Bearer \(token)"] }
        proceed(.success(request))
      }
    })
  }

  func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(endFunction: { _ in
      self.timer?.cancel()
      self.fetch?.cancel()
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
