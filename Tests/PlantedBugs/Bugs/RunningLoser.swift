internal import Connect
internal import ConnectTesting

/// Wakes a mirror if the server takes longer than a second.
///
/// The bug: when the server answers in time, nobody tells the task that waits to ask the mirror.
struct RunningLoser: AsyncUnaryInterceptor {
  let clock: any Clock<Duration>
  let askMirror: @Sendable () async throws -> Void

  func interceptUnary<Input: Sendable, Output: Sendable>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    Task {
      try await self.clock.sleep(for: .seconds(1))
      try await self.askMirror()
    }
    return try await next(request)
  }
}

extension ExplorationCase {
  static let runningLoser = ExplorationCase(
    "RunningLoser",
    source: "joshrotenberg/tower-resilience#393",
    InterceptorExplorer { world in
      Subject { _ in RunningLoser(clock: world.clock) { try await world.step("mirror") } }
    }
  )
}
