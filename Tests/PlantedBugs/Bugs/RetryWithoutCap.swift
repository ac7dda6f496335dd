internal import Connect
internal import ConnectTesting

/// Repeats a call each second while the server is unavailable.
///
/// The bug: it never gives up.
struct RetryWithoutCap: AsyncUnaryInterceptor {
  let clock: any Clock<Duration>

  func interceptUnary<Input: Sendable, Output: Sendable>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    var response = try await next(request)
    while response.code == .unavailable {
      try await self.clock.sleep(for: .seconds(1))
      response = try await next(request)
    }
    return response
  }
}

extension ExplorationCase {
  static let retryWithoutCap = ExplorationCase(
    "RetryWithoutCap",
    source: "line/armeria#546",
    breaking: ["at most 10 attempts"],
    InterceptorExplorer { world in Subject { _ in RetryWithoutCap(clock: world.clock) } }
      .server(.answers(.ok, .unavailable))
  )
}
