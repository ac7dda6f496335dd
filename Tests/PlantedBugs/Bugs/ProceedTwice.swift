internal import Connect
internal import ConnectTesting

/// Shows a token, and does without one if the token takes longer than two seconds.
///
/// The bug: a token that comes later than that proceeds, too.
final class ProceedTwice: Interceptor {
  private let clock: any Clock<Duration>
  private let token: @Sendable () async throws -> String
  private var timer: Task<Void, Never>?

  init(clock: any Clock<Duration>, token: @escaping @Sendable () async throws -> String) {
    self.clock = clock
    self.token = token
  }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(requestFunction: { request, proceed in
      self.timer = proceed.task {
        try? await self.clock.sleep(for: .seconds(2))
        if !Task.isCancelled { proceed(.success(request)) }
      }
      proceed.task {
        guard let token = try? await self.token() else { return }
        self.timer?.cancel()
        var request = request
        request.headers["authorization"] = ["Bearer \(token)"]
        proceed(.success(request))
      }
    })
  }

  func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(endFunction: { _ in self.timer?.cancel() })
  }
}

extension ExplorationCase {
  static let proceedTwice = ExplorationCase(
    "ProceedTwice",
    source: "cfug/dio#2613",
    breaking: ["proceed once"],
    InterceptorExplorer { world in
      Subject { _ in
        ProceedTwice(clock: world.clock) {
          try await world.step("token endpoint")
          return world.token()
        }
      }
    }
  )
}
