internal import Connect
internal import ConnectTesting

/// Asks a mirror, too, if the server takes longer than a second. It stops when the server has answered.
struct StoppedLoser: AsyncUnaryInterceptor {
  let clock: any Clock<Duration>
  let askMirror: @Sendable () async throws -> Void

  func interceptUnary<Input: Sendable, Output: Sendable>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    // Cancelled when this function returns.
    async let _: Void = self.mirror()
    return try await next(request)
  }

  private func mirror() async {
    do {
      try await self.clock.sleep(for: .seconds(1))
      try await self.askMirror()
    } catch {
      // The server has answered, or the mirror has not: the caller waits for the server alone.
    }
  }
}

extension ExplorationCase {
  static let stoppedLoser = ExplorationCase(
    "StoppedLoser",
    InterceptorExplorer { world in
      Subject { _ in StoppedLoser(clock: world.clock) { try await world.step("mirror", canFail: true) } }
    }
    .server(.answers(.ok, .unavailable, .nothing))
  )
}
